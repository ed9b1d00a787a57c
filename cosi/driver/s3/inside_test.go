package s3

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/custody-storage/custody/cosi/wire"
)

// The code decides whether the kit takes a create for answered, so each is nailed down.
func TestCodesOfFailures(t *testing.T) {
	answer := func(status int, code string) error {
		return fmt.Errorf("create-user: %w", &adminError{status: status, Code: code, Message: "m"})
	}
	for _, tc := range []struct {
		err  error
		want codes.Code
	}{
		{nil, codes.OK},
		{answer(404, errNoSuchBucket), codes.NotFound},
		{answer(403, errSignature), codes.Unauthenticated},
		{answer(403, "AccessDenied"), codes.PermissionDenied},
		{answer(400, errInvalidBucketName), codes.InvalidArgument},
		{answer(400, errTooManyBuckets), codes.ResourceExhausted},
		{answer(400, "Something"), codes.FailedPrecondition},
		{answer(409, "OperationAborted"), codes.FailedPrecondition},
		{answer(429, "SlowDown"), codes.Unavailable},
		{answer(500, "InternalError"), codes.Unavailable},
		{answer(503, "SlowDown"), codes.Unavailable},
		{errors.New("connection reset"), codes.Unavailable},
		{fmt.Errorf("x: %w", context.DeadlineExceeded), codes.DeadlineExceeded},
		{fmt.Errorf("x: %w", &net.OpError{Op: "dial", Err: errors.New("refused")}), codes.Aborted},
		{fmt.Errorf("x: %w", &net.OpError{Op: "read", Err: errors.New("reset")}), codes.Unavailable},
	} {
		if got := wire.Code(failed(tc.err, "do", "x")); got != tc.want {
			t.Errorf("%v: got %v, want %v", tc.err, got, tc.want)
		}
	}
}

func TestPolicyOfOthers(t *testing.T) {
	for name, tc := range map[string]struct{ in, want string }{
		"not JSON":            {`{`, "cannot be read"},
		"a single statement":  {`{"Statement":{"Sid":"Theirs","Effect":"Deny"}}`, ""},
		"ours, changed":       {`{"Statement":[{"Sid":"CustodyReadOnlyBucket","Principal":"*"}]}`, "was changed by somebody"},
		"one that looks ours": {`{"Statement":[{"Sid":"CustodyReadOnly","Principal":"*"}]}`, ""},
	} {
		p, err := parsePolicy("b", tc.in)
		if tc.want != "" {
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: got %v", name, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if len(p.foreign) != 1 {
			t.Errorf("%s: foreign statements %s", name, p.foreign)
		}
	}
}

// What is written is read back, and no account is ever in two modes.
func TestPolicyRoundTrip(t *testing.T) {
	p, err := parsePolicy("b", "")
	if err != nil {
		t.Fatal(err)
	}
	steps := []struct {
		change func() bool
		want   bool
	}{
		{func() bool { return p.grant("a", wire.ReadWrite) }, true},
		{func() bool { return p.grant("a", wire.ReadWrite) }, false},
		{func() bool { return p.grant("c", wire.WriteOnly) }, true},
		{func() bool { return p.grant("a", wire.ReadOnly) }, true},
		{func() bool { return p.revoke("x") }, false},
	}
	for i, s := range steps {
		if got := s.change(); got != s.want {
			t.Errorf("step %d: changed %v", i, got)
		}
		text, err := p.text()
		if err != nil {
			t.Fatal(err)
		}
		if p, err = parsePolicy("b", text); err != nil {
			t.Fatal(err)
		}
	}
	text, err := p.text()
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(text, "ReadWrite") || strings.Count(text, `"a"`) != 2 || strings.Count(text, `"c"`) != 2 {
		t.Errorf("got %s", text)
	}
	p.revoke("a")
	p.revoke("c")
	if text, err := p.text(); text != "" || err != nil {
		t.Errorf("an empty policy is %q, %v", text, err)
	}
}
