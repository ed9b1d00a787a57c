package driver

import (
	"regexp"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/custody-storage/custody/cosi/wire"
)

const (
	maxName = 253
	maxID   = 2048
)

var (
	namePattern = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)
	// The set that the API's own pattern takes; the proto text of COSI names a smaller one.
	idPattern = regexp.MustCompile(`^[a-zA-Z0-9/._-]+$`)
)

func invalid(format string, args ...any) error {
	return status.Errorf(codes.InvalidArgument, format, args...)
}

func checkName(name string) error {
	if len(name) > maxName || !namePattern.MatchString(name) {
		return invalid("name %.300q is not a DNS subdomain of 1 to %d characters", name, maxName)
	}
	return nil
}

func checkID(what, id string) error {
	if id == "" || len(id) > maxID || !idPattern.MatchString(id) {
		return invalid("%s id %.300q: an id has 1 to %d characters of a-z A-Z 0-9 / . _ -", what, id, maxID)
	}
	return nil
}

// checkProtocols: a bucket must serve every protocol that is asked for.
func checkProtocols(info wire.Info, want []wire.Protocol) error {
	for _, p := range want {
		if !info.Supports(p) {
			return invalid("protocol %s is not served by driver %s; it serves %v", p, info.Name, info.Protocols)
		}
	}
	return nil
}

func checkGrant(info wire.Info, req wire.GrantRequest) error {
	if err := checkProtocols(info, []wire.Protocol{req.Protocol}); err != nil {
		return err
	}
	if req.Authentication != wire.Key && req.Authentication != wire.ServiceAccount {
		return invalid("authentication type %q: it is Key or ServiceAccount", req.Authentication)
	}
	if len(req.Buckets) == 0 {
		return invalid("no bucket to grant access to")
	}
	seen := map[string]bool{}
	for _, b := range req.Buckets {
		if err := checkID("bucket", b.ID); err != nil {
			return err
		}
		if seen[b.ID] {
			return invalid("bucket %q is named twice", b.ID)
		}
		seen[b.ID] = true
		switch b.Mode {
		case wire.ReadWrite, wire.ReadOnly, wire.WriteOnly:
		default:
			return invalid("bucket %q: access mode %q is not known", b.ID, b.Mode)
		}
	}
	return nil
}
