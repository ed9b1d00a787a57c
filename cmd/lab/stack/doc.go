// Package stack runs Custody on this machine: a Kubernetes API, an S3 server, and
// the programs of bin/custody as child processes, each as the Kubernetes account
// that it has in a cluster, with the roles it has there and no other.
//
//	s, err := stack.Open(ctx, stack.Options{Progress: progress, S3: true})
//	if err != nil { ... }
//	defer s.Close()
//	driver, err := s.Start(ctx, s.S3Driver())
//	sidecar, err := s.Start(ctx, s.Sidecar(stack.SidecarOptions{Endpoint: s.Socket("s3")}))
//	controller, err := s.Start(ctx, s.Controller(stack.ControllerOptions{}))
//	select { case err := <-s.Died(): ...
//
// With a folder, everything in it survives Close and is found again by the next
// Open. Without, nothing is left.
package stack
