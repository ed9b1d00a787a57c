package wire

import "time"

// DefaultCallTimeout holds for a call whose context has no deadline.
const DefaultCallTimeout = 30 * time.Second

// DefaultEndpoint is where COSI drivers listen unless told otherwise (env COSI_ENDPOINT).
const DefaultEndpoint = "unix:///var/lib/cosi/cosi.sock"

// Options of Dial. The zero value is fit for use.
type Options struct {
	// CallTimeout is the deadline of a call whose context has none. 0: DefaultCallTimeout.
	CallTimeout time.Duration
	// MaxReconnectDelay bounds the back-off between attempts to reach a driver that is down. 0: 1 second.
	MaxReconnectDelay time.Duration
}

func (o Options) withDefaults() Options {
	if o.CallTimeout <= 0 {
		o.CallTimeout = DefaultCallTimeout
	}
	if o.MaxReconnectDelay <= 0 {
		o.MaxReconnectDelay = time.Second
	}
	return o
}
