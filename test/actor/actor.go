package actor

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/pflag"

	"github.com/custody-storage/custody/cosi/driver/s3"
	"github.com/custody-storage/custody/cosi/sidecar"
	"github.com/custody-storage/custody/embedded"
	"github.com/custody-storage/custody/manager"
	"github.com/custody-storage/custody/provision"
	"github.com/custody-storage/custody/test/double"
	"github.com/custody-storage/custody/test/failpoint"
)

const (
	envRole           = "CUSTODY_TEST_ACTOR"
	envWithoutIntents = "CUSTODY_TEST_WITHOUT_INTENTS"

	roleSidecar = "sidecar"
	roleDouble  = "double"
	roleS3      = "s3"
)

// Sidecar is how to run `custody cosi sidecar` with these flags.
type Sidecar struct {
	Args []string
	// Failpoints arm it.
	Failpoints *failpoint.Plan
	// WithoutIntents makes it the control.
	WithoutIntents bool
}

// Command is what to start.
func (s Sidecar) Command(name, log string) embedded.Command {
	c := command(roleSidecar, name, log, s.Args...)
	if s.Failpoints != nil {
		c.Env = append(c.Env, s.Failpoints.Setting())
	}
	if s.WithoutIntents {
		c.Env = append(c.Env, envWithoutIntents+"=1")
	}
	return c
}

// Double is how to run a driver double before the backend that serves a socket.
func Double(name, log, backendSocket, driverSocket string) embedded.Command {
	return command(roleDouble, name, log, backendSocket, driverSocket)
}

// S3 is how to run `custody cosi driver s3` before an S3 server, with these flags.
func S3(name, log string, server *embedded.S3, args ...string) embedded.Command {
	access, secret := server.Root()
	c := command(roleS3, name, log, append([]string{"--s3-endpoint=" + server.Endpoint(), "--s3-region=" + server.Region()}, args...)...)
	c.Env = append(c.Env, s3.EnvAccessKey+"="+access, s3.EnvSecretKey+"="+secret)
	return c
}

func command(role, name, log string, args ...string) embedded.Command {
	env := []string{envRole + "=" + role}
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, "CUSTODY_TEST_") {
			env = append(env, e)
		}
	}
	return embedded.Command{Name: name, Path: os.Args[0], Args: args, Env: env, Log: log}
}

// RunIfAsked runs the program that this process is to be, and exits; or returns,
// if it is to be the test.
func RunIfAsked() {
	role := os.Getenv(envRole)
	if role == "" {
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, role, os.Args[1:])
	stop()
	if err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintf(os.Stderr, "%s: %v\n", role, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func run(ctx context.Context, role string, args []string) error {
	switch role {
	case roleSidecar:
		return runSidecar(ctx, args)
	case roleDouble:
		if len(args) != 2 {
			return fmt.Errorf("it takes the backend's and the driver's socket, not %q", args)
		}
		d, err := double.NewDriver(double.NewRemote(args[0]))
		if err != nil {
			return err
		}
		return d.Serve(ctx, args[1])
	case roleS3:
		var o s3.Options
		flags := flag.NewFlagSet(role, flag.ContinueOnError)
		o.Bind(flags)
		if err := flags.Parse(args); err != nil {
			return err
		}
		if err := o.LoadKeys(os.Getenv); err != nil {
			return err
		}
		return s3.Run(ctx, o)
	}
	return fmt.Errorf("no such actor")
}

func runSidecar(ctx context.Context, args []string) error {
	o := sidecar.Defaults()
	flags := pflag.NewFlagSet(roleSidecar, pflag.ContinueOnError)
	o.AddFlags(flags)
	if err := flags.Parse(args); err != nil {
		return err
	}
	points, err := failpoint.FromEnv()
	if err != nil {
		return err
	}
	forget := os.Getenv(envWithoutIntents) != ""
	o.WrapStore = func(s provision.Store) provision.Store {
		if forget {
			s = failpoint.WithoutIntents(s)
		}
		return points.Store(s)
	}
	o.WrapBackend = points.Backend
	log, err := o.Logger(os.Stderr)
	if err != nil {
		return err
	}
	manager.SetLogger(log)
	return sidecar.Run(ctx, o, log)
}
