// Package v1alpha2 is the generated code of the COSI v1alpha2 wire, in one phase and in two. What is measured and what is
// assumed of it is said in cosi.proto; package wire is what calls it.
package v1alpha2
