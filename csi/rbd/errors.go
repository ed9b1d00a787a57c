package rbd

import (
	"context"
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/custody-storage/custody/exclusive"
)

// The errors of the driver are gRPC statuses where the spec has a code for what happened; all others get theirs here.

func invalid(format string, args ...any) error {
	return status.Errorf(codes.InvalidArgument, format, args...)
}

func notFound(format string, args ...any) error {
	return status.Errorf(codes.NotFound, format, args...)
}

func failedPrecondition(format string, args ...any) error {
	return status.Errorf(codes.FailedPrecondition, format, args...)
}

func aborted(format string, args ...any) error { return status.Errorf(codes.Aborted, format, args...) }

type row struct {
	is   error
	code codes.Code
}

// table gives the code of an error that is told by what it wraps. The first that fits counts.
var table = []row{
	{exclusive.ErrStale, codes.Aborted},
	{exclusive.ErrForeign, codes.FailedPrecondition},
	{context.DeadlineExceeded, codes.Unavailable}, // not DEADLINE_EXCEEDED: that is the caller's own clock
	{context.Canceled, codes.Canceled},
	{ErrBadID, codes.NotFound},
}

// coded gives an error its CSI code. What nothing is known of is INTERNAL: the CO calls again.
func coded(err error) error {
	var has interface{ GRPCStatus() *status.Status }
	if err == nil {
		return nil
	}
	if errors.As(err, &has) {
		return status.Error(has.GRPCStatus().Code(), err.Error())
	}
	for _, row := range table {
		if errors.Is(err, row.is) {
			return status.Error(row.code, err.Error())
		}
	}
	return status.Error(codes.Internal, err.Error())
}
