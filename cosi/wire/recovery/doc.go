// Package recovery is the generated code of custody.cosi.v1alpha1.Recovery: what a driver can do from a name alone. The
// contract is in recovery.proto; package wire is what calls it.
package recovery
