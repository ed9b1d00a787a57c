package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/custody-storage/custody/cmd/lab/job"
	"github.com/custody-storage/custody/cmd/lab/show"
	"github.com/custody-storage/custody/cmd/lab/stack"
)

func newUpCommand(progress *show.Progress) *cobra.Command {
	o := stack.Options{S3: true, Progress: progress}
	cmd := &cobra.Command{
		Use: "up", Short: "Run a Kubernetes API with controller, sidecar, driver and S3 server, until Ctrl-C",
		Long: "Runs everything on loopback, each program under its own Kubernetes account. Ctrl-C stops all of it in order; the data\n" +
			"stay, and the next start finds everything as it was, on the same ports.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return up(cmd.Context(), o, cmd.OutOrStdout()) },
	}
	state, err := stateFolder()
	if err == nil {
		o.Dir = filepath.Join(state, "up")
	}
	cmd.Flags().StringVar(&o.Dir, "data-dir", o.Dir, "`folder` for all data and logs")
	cmd.Flags().IntVar(&o.APIPort, "api-port", 0, "`port` of the Kubernetes API (default: the last one with this folder, or a free one)")
	cmd.Flags().IntVar(&o.EtcdPort, "etcd-port", 0, "`port` of etcd (the same default)")
	cmd.Flags().IntVar(&o.S3Port, "s3-port", 0, "`port` of the S3 server (the same default)")
	return cmd
}

// stateFolder is where programs of this user keep data that outlive them, by the
// XDG base directory specification.
func stateFolder() (string, error) {
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "custody"), nil
	}
	home, err := os.UserHomeDir()
	return filepath.Join(home, ".local", "state", "custody"), err
}

func up(ctx context.Context, o stack.Options, out io.Writer) (err error) {
	if o.Dir == "" {
		return errors.New("there is no home folder to keep the data in: say where with --data-dir")
	}
	for flag, port := range map[string]int{"api-port": o.APIPort, "etcd-port": o.EtcdPort, "s3-port": o.S3Port} {
		if port < 0 || port > 65535 {
			return fmt.Errorf("--%s is %d: a port is 1 to 65535, or 0 for any", flag, port)
		}
	}
	s, err := stack.Open(ctx, o)
	if err != nil {
		return err
	}
	defer func() {
		work := o.Progress.Begin("stopping")
		err = errors.Join(err, work.End(s.Close()))
	}()
	controller, sidecar, err := startAll(ctx, s)
	if err != nil {
		return err
	}
	if err := job.MakeArchive(ctx, s.S3); err != nil {
		return err
	}
	s.Watch()
	tell(out, s, controller, sidecar)
	select {
	case <-ctx.Done():
		return nil // Ctrl-C is how this ends
	case err := <-s.Died():
		return err
	}
}

func startAll(ctx context.Context, s *stack.Stack) (controller, sidecar stack.Program, err error) {
	endpoint, err := s.Socket("driver")
	if err != nil {
		return controller, sidecar, err
	}
	if _, err = s.Start(ctx, s.S3Driver(endpoint)); err != nil {
		return controller, sidecar, err
	}
	if sidecar, err = s.Sidecar(ctx, stack.SidecarOptions{Endpoint: endpoint}); err != nil {
		return controller, sidecar, err
	}
	if _, err = s.Start(ctx, sidecar.Command); err != nil {
		return controller, sidecar, err
	}
	if controller, err = s.Controller(ctx, stack.ControllerOptions{}); err != nil {
		return controller, sidecar, err
	}
	_, err = s.Start(ctx, controller.Command)
	return controller, sidecar, err
}

// tell says what runs and what to try, in lines to copy.
func tell(out io.Writer, s *stack.Stack, controller, sidecar stack.Program) {
	fmt.Fprintf(out, `
Everything runs. Stop it with Ctrl-C; the data stay in %[1]s.

  Kubernetes API       %[2]s
  S3 server            %[3]s (region %[4]s)
  metrics              %[5]s (controller)
                       %[6]s (sidecar)
  logs                 %[7]s

Try, in another terminal, here in the repository:

  export KUBECONFIG=%[8]s
  kubectl apply -f examples/
  kubectl get bucketclaims,bucketaccesses,buckets,intents
  kubectl get secret photos-app -o jsonpath='{.data.AWS_SECRET_ACCESS_KEY}' | base64 -d
  bin/custody intents list
  kubectl delete -f examples/

Without kubectl, write "go run ./hack/tool kubectl" in its place; it is built once, which takes minutes.
`, s.In(), s.Kube.Config().Host, s.S3.Endpoint(), s.S3.Region(), controller.Metrics, sidecar.Metrics, s.In("*.log"), s.Kube.KubeconfigPath())
}
