package job

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	core "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cosi "github.com/custody-storage/custody/cosi/api/v1alpha2"
	"github.com/custody-storage/custody/embedded"
)

// archive is the bucket that examples/4-static.yaml binds, and what the administrator
// has in it.
const (
	archive     = "company-archive"
	archiveKey  = "1998/minutes.txt"
	archiveText = "the first meeting"
)

// useSteps are the life of the examples up to their use.
func (j *job) useSteps() []step {
	return []step{
		{"claim", "apply examples/*.yaml, wait until all is ready", j.claim},
		{"use", "ReadWrite: put, get, list work; another's bucket is refused", j.useMode(cosi.AccessModeReadWrite)},
		{"use", "WriteOnly: put works; get and list are refused", j.useMode(cosi.AccessModeWriteOnly)},
		{"use", "ReadOnly: list, get work; put is refused", j.useMode(cosi.AccessModeReadOnly)},
	}
}

func (j *job) claim(ctx context.Context) (string, error) {
	if err := MakeArchive(ctx, j.stack.S3); err != nil {
		return "", err
	}
	if err := j.applyExamples(ctx); err != nil {
		return "", err
	}
	claims, accesses, err := j.all(ctx)
	if err != nil {
		return "", err
	}
	if err := j.ready(ctx, slices.Concat(claims, accesses)...); err != nil {
		return "", err
	}
	return fmt.Sprintf("%d claims and %d accesses ready", len(claims), len(accesses)), nil
}

// MakeArchive makes the bucket that examples/4-static.yaml binds, as an administrator
// would have it already.
func MakeArchive(ctx context.Context, server *embedded.S3) error {
	root := newRoot(server)
	there, err := root.exists(ctx, archive)
	if err != nil {
		return err
	}
	if !there {
		if err := root.make(ctx, archive); err != nil {
			return err
		}
	}
	return root.put(ctx, archive, archiveKey, archiveText)
}

// archiveIsThere says what is wrong with the archive.
func (j *job) archiveIsThere(ctx context.Context) error {
	text, err := j.root.get(ctx, archive, archiveKey)
	if err == nil && text != archiveText {
		err = fmt.Errorf("%s of %s holds %q", archiveKey, archive, text)
	}
	return err
}

// useMode uses every bucket that an access of one mode names, with the credentials
// from its Secret, for what the mode allows and for what it doesn't.
func (j *job) useMode(mode cosi.AccessMode) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		_, accesses, err := j.all(ctx)
		if err != nil {
			return "", err
		}
		var used []string
		for _, o := range accesses {
			for _, c := range o.(*cosi.BucketAccess).Spec.BucketClaims {
				if c.AccessMode != mode {
					continue
				}
				secret := &core.Secret{}
				if err := j.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: c.AccessSecretName}, secret); err != nil {
					return "", err
				}
				user, err := userOf(secret)
				if err != nil {
					return "", err
				}
				if err := use(ctx, mode, user); err != nil {
					return "", err
				}
				j.old = append(j.old, user)
				used = append(used, c.AccessSecretName)
			}
		}
		if len(used) == 0 {
			return "", fmt.Errorf("no access of mode %s is among the examples", mode)
		}
		return fmt.Sprintf("so it is, by %s", strings.Join(used, ", ")), nil
	}
}

func use(ctx context.Context, mode cosi.AccessMode, u bucketUser) error {
	const key, text = "hello.txt", "hello"
	switch mode {
	case cosi.AccessModeReadWrite:
		if err := u.put(ctx, u.bucket, key, text); err != nil {
			return err
		}
		if err := readBack(ctx, u, key, text); err != nil {
			return err
		}
		_, err := u.list(ctx, archive) // only archive-reader has to do with it
		return refused(u.who+": a list of another's bucket", err)
	case cosi.AccessModeWriteOnly:
		if err := u.put(ctx, u.bucket, key, text); err != nil {
			return err
		}
		_, get := u.get(ctx, u.bucket, key)
		_, list := u.list(ctx, u.bucket)
		return errors.Join(refused(u.who+": a get", get), refused(u.who+": a list", list))
	case cosi.AccessModeReadOnly:
		keys, err := u.list(ctx, u.bucket)
		if err != nil {
			return err
		}
		if len(keys) == 0 {
			return fmt.Errorf("%s sees nothing in %s, where something was put", u.who, u.bucket)
		}
		if _, err := u.get(ctx, u.bucket, keys[0]); err != nil {
			return err
		}
		return refused(u.who+": a put", u.put(ctx, u.bucket, key, text))
	}
	return fmt.Errorf("no such mode: %s", mode)
}

func readBack(ctx context.Context, u bucketUser, key, text string) error {
	got, err := u.get(ctx, u.bucket, key)
	if err != nil {
		return err
	}
	keys, err := u.list(ctx, u.bucket)
	if err != nil {
		return err
	}
	if got != text || !slices.Contains(keys, key) {
		return fmt.Errorf("%s put %q as %s into %s, and then read %q and saw %q", u.who, text, key, u.bucket, got, keys)
	}
	return nil
}
