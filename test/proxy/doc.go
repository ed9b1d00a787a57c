// Package proxy stands between Kubernetes clients and the API server and loses
// what passes, as networks and load balancers do.
//
// Each client gets a door of its own ([Proxy.Door]): a TLS listener with the
// client's configuration pointing to it. So faults can be aimed at one client, and
// one can be cut off from the API server while it runs on ([Door.Cut]).
//
// What may befall a request ([Faults]): it is dropped and the server never sees
// it; the server does it and the answer is dropped, which is the lost reply of a
// write; it is held up on its way. The client sees its stream or connection break.
// Watches pass through, unless a door is cut. All is thrown by dice from one seed
// and counted.
package proxy
