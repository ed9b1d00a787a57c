package embedded

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
)

// CephPool is the pool that every embedded Ceph has, ready for RBD images.
const CephPool = "rbd"

const (
	cephOSDPorts    = 100 // an OSD binds several, and new ones at each start
	cephPortTries   = 5
	cephReadyWithin = 90 * time.Second
	cephDataBytes   = 8 << 30
)

// CephOptions says what cluster to run. The zero value is one for a test.
type CephOptions struct {
	// Dir holds the cluster's data, keys and logs, and must not hold a cluster yet; "" is a temporary folder that Stop
	// removes.
	Dir string
	// Durable keeps the data on disk, so that they outlive a kill of the OSD. Otherwise they are in the OSD's memory,
	// which is faster.
	Durable bool
	// IP is the address that monitor and OSD listen on; "" is 127.0.0.1.
	IP string
	// RGW starts an object gateway too.
	RGW bool
	// Settings are added to the [global] section of ceph.conf.
	Settings map[string]string
	// Progress is where the installation of Ceph is shown; nil is standard error.
	Progress io.Writer
}

// Ceph is a running cluster of one monitor and one OSD, without manager. cephx is on. It is a real one: RBD, the
// blocklist and the gateway work as they do anywhere.
type Ceph struct {
	folder   *folder
	options  CephOptions
	programs cephPrograms
	fsid     string
	ports    cephPorts

	mu            sync.Mutex
	mon, osd, rgw *Process
	stopped       bool
}

type cephPorts struct{ monV2, monV1, osdFirst, rgw int }

// StartCeph runs a new cluster and returns when its pool takes writes, 4 to 10 s on an idle machine. It installs Ceph
// first where it lacks and this user may (see [InstallCeph]); otherwise the error is [ErrNoCeph]. ctx is for the start
// only: the cluster runs until Stop.
func StartCeph(ctx context.Context, o CephOptions) (*Ceph, error) {
	if o.Progress == nil {
		o.Progress = os.Stderr
	}
	if o.IP == "" {
		o.IP = "127.0.0.1"
	}
	if err := InstallCeph(ctx, o.Progress); err != nil {
		return nil, err
	}
	programs, _ := findCeph()
	f, err := openFolder(ctx, o.Dir, "ceph")
	if err != nil {
		return nil, err
	}
	c := &Ceph{folder: f, options: o, programs: programs, fsid: uuid.NewString()}
	if err := c.start(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("start Ceph: %w", err), c.Stop())
	}
	return c, nil
}

func (c *Ceph) start(ctx context.Context) error {
	if _, err := os.Stat(c.Conf()); err == nil {
		return fmt.Errorf("%s holds a cluster already: use another folder", c.folder.path)
	}
	for _, dir := range []string{"mon", "osd", "rgw"} {
		if err := os.MkdirAll(c.folder.in(dir), 0o700); err != nil {
			return err
		}
	}
	if err := c.makeKeyrings(); err != nil {
		return err
	}
	for try := 1; ; try++ {
		err := c.startMon(ctx)
		if err == nil {
			break
		}
		if try == cephPortTries || ctx.Err() != nil || !strings.Contains(err.Error(), addressInUse) {
			return err
		}
	}
	// The OSD's store is made while the monitor comes up.
	disk := uuid.NewString()
	made := make(chan error, 1)
	go func() { made <- c.makeOSD(ctx, disk) }()
	_, err := c.Mon(ctx,
		map[string]any{"prefix": "osd new", "uuid": disk},
		map[string]any{"prefix": "osd pool create", "pool": CephPool, "pg_num": 8, "pgp_num": 8},
		map[string]any{"prefix": "osd pool application enable", "pool": CephPool, "app": "rbd"},
	)
	if err := errors.Join(err, <-made); err != nil {
		return err
	}
	if err := c.startDaemon(ctx, &c.osd, Command{
		Name: "ceph-osd", Path: c.programs["ceph-osd"], Args: []string{"-f", "-i", "0", "--no-mon-config"}, Ready: c.usable,
	}); err != nil {
		return err
	}
	if !c.options.RGW {
		return nil
	}
	return c.startDaemon(ctx, &c.rgw, Command{
		Name: "radosgw", Path: c.programs["radosgw"], Args: []string{"-f", "-n", "client.rgw.a"},
		Ready: httpReady(oneShot(), c.RGWEndpoint()),
	})
}

// startMon makes the monitor's store and starts it, on ports that are free now. It isn't waited for: the first command
// does that.
func (c *Ceph) startMon(ctx context.Context) error {
	if err := c.choosePorts(); err != nil {
		return err
	}
	if err := writeFile(c.Conf(), []byte(c.conf())); err != nil {
		return err
	}
	if err := os.RemoveAll(c.folder.in("mon")); err != nil {
		return err
	}
	if err := os.MkdirAll(c.folder.in("mon"), 0o700); err != nil {
		return err
	}
	// Without a map the monitor would take the default ports.
	monmap := c.folder.in("monmap")
	if _, err := c.Run(ctx, "monmaptool", "--create", "--clobber", "--fsid", c.fsid, "--addv", "a", c.Monitors(), monmap); err != nil {
		return err
	}
	if _, err := c.Run(ctx, "ceph-mon", "--mkfs", "-i", "a", "--no-mon-config", "--monmap", monmap, "--keyring", c.folder.in("keyring")); err != nil {
		return err
	}
	return c.startDaemon(ctx, &c.mon, Command{
		Name: "ceph-mon", Path: c.programs["ceph-mon"], Args: []string{"-f", "-i", "a", "--no-mon-config"},
		Ready: func(ctx context.Context) error { return dialable(ctx, c.options.IP, c.ports.monV2) },
	})
}

func (c *Ceph) choosePorts() error {
	for _, port := range []*int{&c.ports.monV2, &c.ports.monV1, &c.ports.osdFirst, &c.ports.rgw} {
		var err error
		if *port, err = FreePort(); err != nil {
			return err
		}
	}
	return nil
}

func (c *Ceph) makeOSD(ctx context.Context, disk string) error {
	_, err := c.Run(ctx, "ceph-osd", "--mkfs", "-i", "0", "--no-mon-config", "--osd-uuid", disk)
	return err
}

// usable is ready when the pool takes a write.
func (c *Ceph) usable(ctx context.Context) error {
	_, err := c.Mon(ctx, map[string]any{"usable": CephPool})
	return err
}

func (c *Ceph) startDaemon(ctx context.Context, place **Process, cmd Command) error {
	cmd.Args = append(cmd.Args, "--conf", c.Conf())
	cmd.Env, cmd.Log, cmd.inherit = plainEnv(), c.folder.in(cmd.Name+".log"), []*os.File{c.folder.lock}
	cmd.ReadyWithin = cephReadyWithin
	p, err := StartProcess(ctx, cmd)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	*place = p
	return nil
}

// Conf is the path of a ceph.conf by which the programs of Ceph find the cluster, as its administrator.
func (c *Ceph) Conf() string { return c.folder.in("ceph.conf") }

// Dir is the data folder; it holds the logs too.
func (c *Ceph) Dir() string { return c.folder.path }

// FSID is the cluster's id.
func (c *Ceph) FSID() string { return c.fsid }

// Monitors is the monitor's address in the form of the setting mon_host.
func (c *Ceph) Monitors() string {
	return fmt.Sprintf("[v2:%s,v1:%s]", c.at(c.ports.monV2), c.at(c.ports.monV1))
}

// MonitorV1 is the monitor's address for clients of the first protocol, such as krbd without ms_mode.
func (c *Ceph) MonitorV1() string { return c.at(c.ports.monV1) }

// RGWEndpoint is the object gateway's URL.
func (c *Ceph) RGWEndpoint() string { return "http://" + c.at(c.ports.rgw) }

func (c *Ceph) at(port int) string { return c.options.IP + ":" + strconv.Itoa(port) }

// MonProcess returns the monitor's process, to kill, pause or resume it. It changes with RestartMon.
func (c *Ceph) MonProcess() *Process { return c.process(&c.mon) }

// OSDProcess returns the OSD's process. It changes with RestartOSD.
func (c *Ceph) OSDProcess() *Process { return c.process(&c.osd) }

// RGWProcess returns the gateway's process, nil without [CephOptions.RGW]. It changes with RestartRGW.
func (c *Ceph) RGWProcess() *Process { return c.process(&c.rgw) }

func (c *Ceph) process(place **Process) *Process {
	c.mu.Lock()
	defer c.mu.Unlock()
	return *place
}

// RestartMon starts the monitor again after its death.
func (c *Ceph) RestartMon(ctx context.Context) error { return c.restart(ctx, &c.mon) }

// RestartOSD starts the OSD again after its death and returns when the pool takes writes. Without
// [CephOptions.Durable] a kill has lost the data, and the pool never becomes usable again.
func (c *Ceph) RestartOSD(ctx context.Context) error { return c.restart(ctx, &c.osd) }

// RestartRGW starts the gateway again after its death.
func (c *Ceph) RestartRGW(ctx context.Context) error { return c.restart(ctx, &c.rgw) }

func (c *Ceph) restart(ctx context.Context, place **Process) error {
	p, err := c.process(place).Restart(ctx)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	*place = p
	return nil
}

// Stop ends the cluster and removes a temporary folder. Nobody needs its data after that, so it is killed: an orderly
// end waits for peers that don't exist. It may be called again, and does nothing then.
func (c *Ceph) Stop() error {
	c.mu.Lock()
	again := c.stopped
	c.stopped = true
	processes := []*Process{c.rgw, c.osd, c.mon}
	c.mu.Unlock()
	if again {
		return nil
	}
	var errs []error
	for _, p := range processes {
		if p != nil {
			errs = append(errs, p.Kill())
		}
	}
	return errors.Join(append(errs, c.folder.close())...)
}
