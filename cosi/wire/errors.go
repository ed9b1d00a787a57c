package wire

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"

	"github.com/custody-storage/custody/cosi/wire/recovery"
)

// ErrNotOffered says that the driver has no such call. Take the other way; nothing was made. Its Code is
// UNIMPLEMENTED.
var ErrNotOffered = errors.New("the driver does not offer this call")

// CallError is a failed call to a driver: what was asked, of whom, what came back.
type CallError struct {
	// Op is the call's name in the driver's interface, "DriverCreateBucket".
	Op string
	// Subject is the name or id that the call was about.
	Subject string
	// Driver and Endpoint say who was asked.
	Driver, Endpoint string
	// Err is what came back; a gRPC status if the driver answered.
	Err error
}

func (e *CallError) Error() string {
	if s, ok := status.FromError(e.Err); ok {
		return fmt.Sprintf("%s %q: driver %s at %s answered %s: %s", e.Op, e.Subject, e.Driver, e.Endpoint, s.Code(), s.Message())
	}
	return fmt.Sprintf("%s %q: driver %s at %s: %v", e.Op, e.Subject, e.Driver, e.Endpoint, e.Err)
}

func (e *CallError) Unwrap() error { return e.Err }

// NoIDError says that a create, grant or generate call answered OK without an id. Something exists, or
// may, and nobody knows its id: look by name.
type NoIDError struct{ Op, Subject, Driver string }

func (e *NoIDError) Error() string {
	return fmt.Sprintf("%s %q: driver %s answered OK without an id; this is a fault of the driver: report it to its author", e.Op, e.Subject, e.Driver)
}

// GRPCStatus makes Code answer INTERNAL.
func (e *NoIDError) GRPCStatus() *status.Status { return status.New(codes.Internal, e.Error()) }

// Code is the gRPC code of an error of this package: the driver's own where it answered,
// DEADLINE_EXCEEDED and CANCELED for an ended context, UNIMPLEMENTED for ErrNotOffered, OK for nil and
// UNKNOWN for anything else, also for a number that gRPC has no code for: a driver may put any there, and
// none of them may be taken for a success or for an answer of ours. No code proves that nothing was made.
func Code(err error) codes.Code {
	switch {
	case err == nil:
		return codes.OK
	case errors.Is(err, ErrNotOffered):
		return codes.Unimplemented
	}
	var s interface{ GRPCStatus() *status.Status }
	if errors.As(err, &s) {
		if c := s.GRPCStatus().Code(); c <= codes.Unauthenticated {
			return c
		}
		return codes.Unknown
	}
	return status.FromContextError(unwrapContext(err)).Code()
}

func unwrapContext(err error) error {
	for _, c := range []error{context.DeadlineExceeded, context.Canceled} {
		if errors.Is(err, c) {
			return c
		}
	}
	return err
}

// Message is the driver's own words where it answered, else the error's text: for a status field that a
// user reads.
func Message(err error) string {
	var s interface{ GRPCStatus() *status.Status }
	if errors.As(err, &s) {
		return s.GRPCStatus().Message()
	}
	if err == nil {
		return ""
	}
	return err.Error()
}

// MadeID is the id that an error carries as a status detail (custody.cosi.v1alpha1.MadeDetail): the call
// failed, but this was made and exists, or may. Empty if there is none.
func MadeID(err error) string {
	var s interface{ GRPCStatus() *status.Status }
	if err == nil || !errors.As(err, &s) {
		return ""
	}
	for _, d := range s.GRPCStatus().Details() {
		if m, ok := d.(*recovery.MadeDetail); ok && m.GetId() != "" {
			return m.GetId()
		}
	}
	return ""
}

// WithMadeID is for drivers: the status error err, with the id of what was made as a detail.
func WithMadeID(err error, id string) error {
	s := status.Convert(err)
	if id == "" || s.Code() == codes.OK {
		return err
	}
	d, derr := s.WithDetails(protoadapt.MessageV1Of(&recovery.MadeDetail{Id: id}))
	if derr != nil {
		return err
	}
	return d.Err()
}
