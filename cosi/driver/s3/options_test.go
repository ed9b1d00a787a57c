package s3_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/custody-storage/custody/cosi/driver"
	"github.com/custody-storage/custody/cosi/driver/s3"
	"github.com/custody-storage/custody/cosi/wire"
)

func TestLoadKeys(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte("from-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name string
		env  map[string]string
		want string
	}{
		{"environment", map[string]string{"CUSTODY_S3_ACCESS_KEY": "a", "CUSTODY_S3_SECRET_KEY": "s", "CUSTODY_S3_SEED": "x"}, "a s x"},
		{"file", map[string]string{"CUSTODY_S3_ACCESS_KEY": "a", "CUSTODY_S3_SECRET_KEY_FILE": file}, "a from-file "},
		{"nothing", nil, "  "},
		{"both", map[string]string{"CUSTODY_S3_SEED": "x", "CUSTODY_S3_SEED_FILE": file}, "are both set"},
		{"no file", map[string]string{"CUSTODY_S3_SECRET_KEY_FILE": file + "x"}, "no such file"},
		{"empty file", map[string]string{"CUSTODY_S3_SECRET_KEY_FILE": empty}, "is empty"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var o s3.Options
			err := o.LoadKeys(func(k string) string { return tc.env[k] })
			got := o.AccessKey + " " + o.SecretKey.Reveal() + " " + o.Seed.Reveal()
			if err != nil {
				got = err.Error()
			}
			if !strings.Contains(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestOptionsAreChecked(t *testing.T) {
	good := s3.Options{Endpoint: "http://127.0.0.1:1", AccessKey: "a", SecretKey: "the-secret"}
	if _, err := s3.New(good); err != nil {
		t.Errorf("control: %v", err)
	}
	for want, change := range map[string]func(*s3.Options){
		"--s3-endpoint":            func(o *s3.Options) { o.Endpoint = "" },
		"--s3-endpoint is \"x:1\"": func(o *s3.Options) { o.Endpoint = "x:1" },
		"--s3-public-endpoint":     func(o *s3.Options) { o.PublicEndpoint = "ftp://x" },
		"CUSTODY_S3_ACCESS_KEY":    func(o *s3.Options) { o.AccessKey = "" },
		"CUSTODY_S3_SECRET_KEY":    func(o *s3.Options) { o.SecretKey = "" },
		"--owner":                  func(o *s3.Options) { o.Owner = "two words" },
	} {
		o := good
		change(&o)
		_, err := s3.New(o)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "the-secret") {
			t.Errorf("%s: got %v", want, err)
		}
		if err := s3.Run(context.Background(), o); err == nil {
			t.Errorf("%s: Run accepted it", want)
		}
	}
	if printed := fmt.Sprintf("%+v %v", good, &good); strings.Contains(printed, "the-secret") {
		t.Errorf("the secret is printed: %s", printed)
	}
}

// Flags set all but the keys, and no flag can take one.
func TestBind(t *testing.T) {
	var o s3.Options
	fs := flag.NewFlagSet("", flag.ContinueOnError)
	o.Bind(fs)
	if err := fs.Parse([]string{"--s3-endpoint=http://h:1", "--owner=c", "--s3-region=eu", "--endpoint=unix:///x"}); err != nil {
		t.Fatal(err)
	}
	if o.Endpoint != "http://h:1" || o.Owner != "c" || o.Region != "eu" || o.Serve.Endpoint != "unix:///x" || o.Name != s3.DefaultName || o.Kit.CallTimeout != driver.DefaultCallTimeout {
		t.Errorf("got %+v", o)
	}
	fs.VisitAll(func(f *flag.Flag) {
		if strings.Contains(f.Name, "key") || strings.Contains(f.Name, "secret") || strings.Contains(f.Name, "seed") {
			t.Errorf("flag --%s takes a secret", f.Name)
		}
	})
}

// The driver runs as a program would, in every dialect, against the real server.
func TestRunInEveryDialect(t *testing.T) {
	r := newRig(t)
	for name, which := range map[string]wire.Services{
		"v1alpha1":  {V1alpha1: true, Recovery: true},
		"one-phase": {V1alpha2: true, Recovery: true},
		"two-phase": {V1alpha2: true, TwoPhase: true, Recovery: true},
	} {
		t.Run(name, func(t *testing.T) {
			_, d := r.driver(func(o *s3.Options) { o.Serve.Services = which })
			ctx := deadline(t)
			req := wire.BucketRequest{Name: "bc-" + name, Protocols: []wire.Protocol{wire.S3}}
			if which.TwoPhase {
				id, err := d.GenerateBucketID(ctx, req)
				if err != nil {
					t.Fatal(err)
				}
				req.ID = id
			}
			b, err := d.CreateBucket(ctx, req)
			if err != nil {
				t.Fatal(err)
			}
			g, err := d.GrantAccess(ctx, access("ba-"+name, wire.AccessedBucket{ID: b.ID, Mode: wire.ReadWrite}))
			if err != nil {
				t.Fatal(err)
			}
			c := r.as(g)
			if err := put(c, b.ID, "a"); err != nil {
				t.Error(err)
			}
			if err := get(c, b.ID, "a"); err != nil {
				t.Error(err)
			}
			if err := remove(c, b.ID, "a"); err != nil {
				t.Error(err)
			}
			if err := d.RevokeAccess(ctx, wire.RevokeRequest{AccountID: g.AccountID, Protocol: wire.S3, Authentication: wire.Key, BucketIDs: []string{b.ID}}); err != nil {
				t.Error(err)
			}
			if err := d.DeleteBucket(ctx, wire.DeleteBucketRequest{ID: b.ID}); err != nil {
				t.Error(err)
			}
		})
	}
	if got := r.buckets(); got != "" {
		t.Errorf("left: %s", got)
	}
}
