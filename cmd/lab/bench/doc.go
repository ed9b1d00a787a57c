// Package bench measures what Custody makes of a Kubernetes API: how many claims a
// second become ready and go, against a driver that does nothing, so that whatever
// is slow is Custody or the API server.
//
// The API server sets the limit: the same run measures how many claims a second
// it takes when their bare writes are sent with nothing between them ([ceiling]).
// The share of that which Custody reaches (ready_ratio) is the figure that
// compares between machines.
//
// Controller and sidecar are the shipped binary, as processes of their own, under
// their own accounts, with leader election on. The driver is a process too, behind
// a unix socket.
package bench
