package embedded

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"time"
)

const (
	cephCallWithin = 60 * time.Second
	debianPython   = "/usr/bin/python3" // another Python in PATH doesn't have Debian's modules
)

//go:embed ceph.py
var cephScript string

// Mon runs monitor commands as the administrator, in one connection, and returns what each has printed. A command is
// what the ceph program sends, such as {"prefix": "osd blocklist ls"}. The first that fails ends it. It takes as long
// as Python takes to start, so batch.
func (c *Ceph) Mon(ctx context.Context, commands ...map[string]any) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, cephCallWithin)
	defer cancel()
	asked, err := json.Marshal(map[string]any{"conf": c.Conf(), "seconds": int(cephCallWithin.Seconds()), "steps": commands})
	if err != nil {
		return nil, fmt.Errorf("monitor commands: %w", err)
	}
	run := exec.CommandContext(ctx, debianPython, "-c", cephScript)
	run.Stdin, run.Env, run.SysProcAttr = bytes.NewReader(asked), plainEnv(), childAttributes()
	out, err := run.Output()
	if err != nil {
		return nil, fmt.Errorf("run monitor commands: %w%s", errors.Join(err, context.Cause(ctx)), stderrOf(err))
	}
	var answers []struct {
		Code int
		Out  string
		Said string
	}
	if err := json.Unmarshal(out, &answers); err != nil {
		return nil, fmt.Errorf("read the answers to monitor commands: %w", err)
	}
	texts := []string{}
	for i, a := range answers {
		if a.Code != 0 {
			return texts, fmt.Errorf("monitor command %v: %s (%d)", commands[min(i, len(commands)-1)], a.Said, a.Code)
		}
		texts = append(texts, a.Out)
	}
	return texts, nil
}

// Auth gives an identity exactly these capabilities, makes it if need be, and returns its key. The name has the form
// client.NAME; caps go by service ("mon", "osd").
func (c *Ceph) Auth(ctx context.Context, entity string, caps map[string]string) (key string, err error) {
	list := []string{}
	for service, cap := range caps {
		list = append(list, service, cap)
	}
	texts, err := c.Mon(ctx,
		map[string]any{"prefix": "auth get-or-create", "entity": entity},
		map[string]any{"prefix": "auth caps", "entity": entity, "caps": list},
		map[string]any{"prefix": "auth get-key", "entity": entity},
	)
	if err != nil {
		return "", err
	}
	return texts[2], nil
}

// Pool makes a pool for RBD images and returns when it takes writes.
func (c *Ceph) Pool(ctx context.Context, name string) error {
	_, err := c.Mon(ctx,
		map[string]any{"prefix": "osd pool create", "pool": name, "pg_num": 8, "pgp_num": 8},
		map[string]any{"prefix": "osd pool application enable", "pool": name, "app": "rbd"},
		map[string]any{"usable": name},
	)
	return err
}

// Run runs a program of Ceph, such as rbd or radosgw-admin, as the cluster's administrator, and returns its standard
// output.
func (c *Ceph) Run(ctx context.Context, program string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, cephCallWithin)
	defer cancel()
	path := c.programs[program]
	if path == "" {
		return nil, fmt.Errorf("run %s: it is not among the programs of Ceph that are known here", program)
	}
	run := exec.CommandContext(ctx, path, append(args, "--conf", c.Conf())...)
	run.Env, run.SysProcAttr = plainEnv(), childAttributes()
	out, err := run.Output()
	if err != nil {
		return out, fmt.Errorf("run %s %q: %w%s", program, args, errors.Join(err, context.Cause(ctx)), stderrOf(err))
	}
	return out, nil
}

// stderrOf quotes what a program has said before it failed.
func stderrOf(err error) string {
	var exit *exec.ExitError
	if !errors.As(err, &exit) || len(exit.Stderr) == 0 {
		return ""
	}
	return "; it says: " + string(bytes.TrimSpace(exit.Stderr))
}

// SetKey gives an identity that exists another key, as a rotation does, and keeps its capabilities.
func (c *Ceph) SetKey(ctx context.Context, entity, key string) error {
	texts, err := c.Mon(ctx, map[string]any{"prefix": "auth get", "entity": entity, "format": "json"})
	if err != nil {
		return err
	}
	var known []struct{ Caps map[string]string }
	if err := json.Unmarshal([]byte(texts[0]), &known); err != nil || len(known) != 1 {
		return fmt.Errorf("read what is known of %s: %w", entity, err)
	}
	keyring := c.folder.in("keyring." + entity)
	text := fmt.Sprintf("[%s]\nkey = %s\n", entity, key)
	for service, cap := range known[0].Caps {
		text += fmt.Sprintf("caps %s = %q\n", service, cap)
	}
	if err := writeFile(keyring, []byte(text)); err != nil {
		return err
	}
	_, err = c.Run(ctx, "ceph", "auth", "import", "-i", keyring)
	return err
}
