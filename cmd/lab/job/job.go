package job

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/custody-storage/custody/cmd/lab/show"
	"github.com/custody-storage/custody/cmd/lab/stack"
	cosi "github.com/custody-storage/custody/cosi/api/v1alpha2"
	"github.com/custody-storage/custody/cosi/driver/s3"
	"github.com/custody-storage/custody/embedded"
	"github.com/custody-storage/custody/embedded/toolbox"
	"github.com/custody-storage/custody/test/oracle"
	"github.com/custody-storage/custody/test/proxy"
)

// Short times, so that a run takes no minute: a real cluster has the defaults.
var sidecarArgs = []string{
	"--call-timeout=3s", "--settle=4s", "--lease-duration=3s",
	"--retry-interval-start=200ms", "--retry-interval-max=2s",
}

const namespace = "default" // of the examples

// Options says how the job is played.
type Options struct {
	// Keep leaves the data for a look.
	Keep     bool
	Out      io.Writer // gets the table
	Progress *show.Progress
}

// Run plays the job, writes a table of what was seen, and returns the outcome of the
// comparison. An error says that the job could not be played to its end, or that
// something seen was wrong; the comparison is made all the same if that can be done.
// Nothing is left running.
func Run(ctx context.Context, o Options) (report oracle.Report, err error) {
	s, err := stack.Open(ctx, stack.Options{S3: true, Keep: o.Keep, Progress: o.Progress})
	if err != nil {
		return report, err
	}
	j := &job{Options: o, stack: s, client: s.Client, news: make(chan struct{}, 1)}
	defer func() {
		err = errors.Join(err, j.close())
		if o.Keep {
			o.Progress.Say("kept: %s (remove it when you have seen enough)", s.In())
		}
	}()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := j.start(ctx); err != nil {
		return report, err
	}
	rows, failed := j.play(ctx)
	if ctx.Err() != nil {
		return report, context.Cause(ctx)
	}
	begin := time.Now()
	report, err = j.compare(ctx, failed)
	if err != nil {
		failed = errors.Join(failed, err)
	} else {
		rows = append(rows, row{"compare", "all buckets and accounts on the S3 server's disk with all records", seen(report), time.Since(begin)})
	}
	j.table(rows)
	return report, failed
}

type job struct {
	Options
	stack    *stack.Stack
	client   client.WithWatch
	examples string
	news     chan struct{}
	work     *show.Work // the step that is played

	proxy   *proxy.Proxy
	door    *proxy.Door
	gate    *gate
	sidecar *embedded.Process
	command embedded.Command // of the sidecar

	root bucketUser   // administrator of the S3 server
	old  []bucketUser // credentials that were handed out
}

// start runs the programs, with gate and proxy between them.
func (j *job) start(ctx context.Context) error {
	box, err := toolbox.Open(j.Progress.Out())
	if err != nil {
		return err
	}
	j.examples = filepath.Join(box.Root(), "examples")

	driver, err := j.stack.Socket("driver")
	if err != nil {
		return err
	}
	gated, err := j.stack.Socket("gate")
	if err != nil {
		return err
	}
	if _, err := j.stack.Start(ctx, j.stack.S3Driver(driver)); err != nil {
		return err
	}
	if j.gate, err = openGate(ctx, driver, gated); err != nil {
		return err
	}
	if j.proxy, err = proxy.New(j.stack.Kube.Config(), 1); err != nil {
		return err
	}
	sidecar, err := j.stack.Sidecar(ctx, stack.SidecarOptions{
		Endpoint: gated, Args: sidecarArgs,
		Through: func(c *rest.Config) (_ *rest.Config, err error) {
			if j.door, err = j.proxy.Door("sidecar", c); err != nil {
				return nil, err
			}
			return j.door.Config(), nil
		},
	})
	if err != nil {
		return err
	}
	j.command = sidecar.Command
	if j.sidecar, err = j.stack.Start(ctx, j.command); err != nil {
		return err
	}
	controller, err := j.stack.Controller(ctx, stack.ControllerOptions{})
	if err != nil {
		return err
	}
	if _, err := j.stack.Start(ctx, controller.Command); err != nil {
		return err
	}
	j.root = newRoot(j.stack.S3)
	return j.watchAll(ctx)
}

// close stops everything, the asking side first.
func (j *job) close() error {
	var errs []error
	errs = append(errs, j.stack.Close())
	if j.proxy != nil {
		errs = append(errs, j.proxy.Close())
	}
	if j.gate != nil {
		errs = append(errs, j.gate.Close())
	}
	return errors.Join(errs...)
}

// row is a line of the table.
type row struct {
	step, did, saw string
	took           time.Duration
}

// step is a piece of the job: what is done, for the table, and the doing, which
// tells what was seen.
type step struct {
	name, did string
	play      func(context.Context) (saw string, err error)
}

// play plays all steps. After one that failed only those follow that clean up.
func (j *job) play(ctx context.Context) (rows []row, failed error) {
	steps := append(j.useSteps(), j.raceSteps()...)
	cleanUp := len(steps)
	steps = append(steps, j.deleteSteps()...)
	for i, s := range steps {
		if failed != nil && i < cleanUp {
			continue
		}
		j.work = j.Progress.Begin("%s: %s", s.name, s.did)
		begin := time.Now()
		saw, err := s.play(ctx)
		_ = j.work.End(err)
		if ctx.Err() != nil {
			return rows, context.Cause(ctx)
		}
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %s: %w", s.name, s.did, err))
			saw = "FAILED, see below"
		}
		rows = append(rows, row{s.name, s.did, saw, time.Since(begin)})
	}
	return rows, failed
}

func (j *job) table(rows []row) {
	lines := [][]string{{"step", "what was done", "what was seen", "time"}}
	for _, r := range rows {
		lines = append(lines, []string{r.step, r.did, r.saw, fmt.Sprintf("%.1fs", r.took.Seconds())})
	}
	fmt.Fprintln(j.Out)
	show.Table(j.Out, lines...)
	fmt.Fprintln(j.Out)
}

// settled is how long the comparison waits for what is on its way.
const settled = 30 * time.Second

// compare holds the backend against the records. Where a step has failed it doesn't
// wait for rest.
func (j *job) compare(ctx context.Context, failed error) (oracle.Report, error) {
	o := oracle.Options{
		Reader: j.client, Drivers: []string{s3.DefaultName},
		Backends: []oracle.Inventory{j.inventory()},
		Keeps:    []oracle.Keep{{Kind: "bucket", Name: archive, Check: j.archiveIsThere}},
	}
	if failed != nil {
		return oracle.Compare(ctx, o)
	}
	ctx, cancel := context.WithTimeout(ctx, settled)
	defer cancel()
	return oracle.Wait(ctx, o)
}

// inventory is what Custody has in the backend.
func (j *job) inventory() oracle.Inventory { return oracle.OfS3(j.stack.S3, s3.DefaultName) }

func seen(r oracle.Report) string {
	text := fmt.Sprintf("backend: %d of Custody's; records:", r.Items)
	if len(r.Intents) == 0 {
		text += " none"
	}
	for phase, n := range r.Intents {
		text += fmt.Sprintf(" %d %s", n, phase)
	}
	return text
}

// all returns the claims and accesses that there are.
func (j *job) all(ctx context.Context) (claims, accesses []client.Object, err error) {
	cs, as := &cosi.BucketClaimList{}, &cosi.BucketAccessList{}
	if err := j.client.List(ctx, cs, client.InNamespace(namespace)); err != nil {
		return nil, nil, err
	}
	if err := j.client.List(ctx, as, client.InNamespace(namespace)); err != nil {
		return nil, nil, err
	}
	for i := range cs.Items {
		claims = append(claims, &cs.Items[i])
	}
	for i := range as.Items {
		accesses = append(accesses, &as.Items[i])
	}
	return claims, accesses, nil
}

func (j *job) applyExamples(ctx context.Context) error {
	_, err := stack.Apply(ctx, j.client, os.DirFS(j.examples))
	return err
}
