package provision

import "fmt"

// Code is the answer's code, by the numbers of gRPC.
type Code uint8

const (
	OK                 Code = 0
	Canceled           Code = 1
	Unknown            Code = 2
	InvalidArgument    Code = 3
	DeadlineExceeded   Code = 4
	NotFound           Code = 5
	AlreadyExists      Code = 6
	PermissionDenied   Code = 7
	ResourceExhausted  Code = 8
	FailedPrecondition Code = 9
	Aborted            Code = 10
	OutOfRange         Code = 11
	Unimplemented      Code = 12
	Internal           Code = 13
	Unavailable        Code = 14
	DataLoss           Code = 15
	Unauthenticated    Code = 16

	// NotSent is not a code of gRPC: the call has never left this process, for want of a driver that listens or because
	// the request was refused here. It is the one answer that proves that nothing was made.
	NotSent Code = 17
)

// meaning is what the engine reads out of a code. No code of a driver proves that nothing was made: a driver may answer
// INVALID_ARGUMENT after it made the thing (aws-ebs-csi-driver#2803, gcp-filestore-csi-driver#925).
type meaning struct {
	name string
	// ended: the driver says that it is done with this call. Otherwise its work may still land.
	ended bool
	// again: the same call may succeed later without anybody changing anything. Otherwise it is made again only at
	// the slowest pace.
	again bool
}

// codes is the one table of codes. COSI's spec text names INVALID_ARGUMENT, ALREADY_EXISTS and UNIMPLEMENTED as not
// retryable, OUT_OF_RANGE for access to several buckets; the rest is retryable. Which codes end a call is our reading:
// those that a program gives up with before or after it worked, not those that gRPC, a proxy or a time-out inside the
// driver give while the backend may be at work.
var codes = [...]meaning{
	OK:                 {"OK", true, true},
	Canceled:           {"CANCELLED", false, true},
	Unknown:            {"UNKNOWN", false, true},
	InvalidArgument:    {"INVALID_ARGUMENT", true, false},
	DeadlineExceeded:   {"DEADLINE_EXCEEDED", false, true},
	NotFound:           {"NOT_FOUND", true, true},
	AlreadyExists:      {"ALREADY_EXISTS", true, false},
	PermissionDenied:   {"PERMISSION_DENIED", true, true},
	ResourceExhausted:  {"RESOURCE_EXHAUSTED", true, true},
	FailedPrecondition: {"FAILED_PRECONDITION", true, true},
	Aborted:            {"ABORTED", false, true},
	OutOfRange:         {"OUT_OF_RANGE", true, false},
	Unimplemented:      {"UNIMPLEMENTED", true, false},
	Internal:           {"INTERNAL", false, true},
	Unavailable:        {"UNAVAILABLE", false, true},
	DataLoss:           {"DATA_LOSS", false, true},
	Unauthenticated:    {"UNAUTHENTICATED", true, true},
	NotSent:            {"NOT_SENT", true, true},
}

// String gives the code's name in gRPC's spelling.
func (c Code) String() string {
	if int(c) < len(codes) {
		return codes[c].name
	}
	return fmt.Sprintf("CODE_%d", uint8(c))
}

// Ended tells whether the driver has said that it is done with the call. A code that is not in the table is not.
func (c Code) Ended() bool { return int(c) < len(codes) && codes[c].ended }

// Again tells whether the same call may succeed later by itself.
func (c Code) Again() bool { return int(c) >= len(codes) || codes[c].again }
