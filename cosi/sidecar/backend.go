package sidecar

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/custody-storage/custody/api/v1alpha1"
	"github.com/custody-storage/custody/cosi/wire"
	"github.com/custody-storage/custody/provision"
)

// backend is the door to the driver. See provision.Backend.
type backend struct {
	*adapter
	template *idTemplate  // nil: ids don't follow from names
	repeat   bool         // the admin declares that a repeat is safe
	generate *atomic.Bool // the driver gives ids before it creates
}

var _ provision.Backend = backend{}

// Ways implements provision.Backend.
func (b backend) Ways() provision.Ways {
	info := b.driver.Info()
	can := info.Recovery.Of(b.kind.calls())
	w := b.kind.ways(info)
	w.Generate = b.generate.Load()
	w.DeleteByName, w.FindByName, w.Mark = can.DeleteByName, can.FindByName, can.OwnerMark
	w.Template = b.template != nil
	w.Repeat = b.repeat || can.CreateRepeatSafe
	return w
}

// probe asks the driver whether it gives ids before it creates, with a request that no driver can serve: one that has
// the call refuses the empty name, one that has not says so. So nothing is made, and the first real name does not meet
// an UNIMPLEMENTED. An error says that the driver was not reached.
func (b backend) probe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, b.options.CallTimeout)
	defer cancel()
	_, err := b.kind.generate(ctx, "", v1alpha1.Inputs{})
	switch wire.Code(err) {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled:
		return err
	}
	b.generate.Store(!errors.Is(err, wire.ErrNotOffered))
	return nil
}

// Do implements provision.Backend.
func (b backend) Do(ctx context.Context, c provision.Call) provision.Answer {
	e := b.entry(c.Name)
	if c.Op == provision.Derive {
		return b.derive(e)
	}
	if c.Op == provision.Delete || c.Op == provision.DeleteByName {
		if err := b.beforeDelete(ctx, e); err != nil {
			e.answer, e.down = err.Error(), false
			return provision.Answer{Code: provision.NotSent}
		}
	}
	ctx, cancel := context.WithTimeout(ctx, b.options.CallTimeout)
	defer cancel()
	begun := time.Now()
	id, err := b.call(ctx, e, c)
	a := provision.Answer{Code: code(err), ID: id}
	if wire.NotSent(err) {
		a.Code = provision.NotSent
	}
	b.metrics.call(b.kind.intents(), c.Op, a.Code, time.Since(begun))
	e.down = a.Code == provision.NotSent && wire.Code(err) != codes.OutOfRange && wire.Code(err) != codes.InvalidArgument
	if err != nil {
		e.answer = err.Error()
		b.log.Info("driver call failed", "op", opName(c.Op), "name", c.Name, "id", c.ID, "code", a.Code.String(), "answer", cut(e.answer, maxAnswer))
	} else if c.Op == provision.Delete && c.ID != e.memo.Rec.ID {
		b.metrics.stray(b.kind.intents())
	}
	return a
}

// beforeDelete has a deadline of its own: a slow API server takes no time from the driver's call.
func (b backend) beforeDelete(ctx context.Context, e *entry) error {
	ctx, cancel := context.WithTimeout(ctx, b.options.CallTimeout)
	defer cancel()
	return b.kind.beforeDelete(ctx, e)
}

// call makes the call. The id that it answers is good whatever the error.
func (b backend) call(ctx context.Context, e *entry, c provision.Call) (string, error) {
	name, in := string(c.Name), e.inputs
	switch c.Op {
	case provision.Generate:
		id, err := b.kind.generate(ctx, name, in)
		if errors.Is(err, wire.ErrNotOffered) {
			b.generate.Store(false) // another driver program than the one that was probed
		}
		return id, err
	case provision.Create:
		p, err := b.kind.create(ctx, name, c.ID, in)
		if err == nil {
			e.payload = p
		}
		if id := wire.MadeID(err); p.id == "" {
			p.id = id
		}
		return p.id, err
	case provision.Fetch:
		p, err := b.kind.fetch(ctx, c.ID, in)
		if errors.Is(err, wire.ErrNotOffered) {
			return c.ID, nil // no way to look: the id is taken as it is
		}
		if err == nil {
			e.payload = p
		}
		return c.ID, err
	case provision.Find:
		return b.find(ctx, e, c)
	case provision.Delete:
		return "", b.kind.remove(ctx, c.ID, in)
	case provision.DeleteByName:
		return "", b.driver.DeleteByName(ctx, b.kind.calls(), wire.NameRequest{Name: name, Parameters: in.Parameters})
	}
	return "", fmt.Errorf("no such call: %d", c.Op)
}

// find gives one thing of that name that is not among those known. What carries another's mark is not ours, whatever its
// name.
func (b backend) find(ctx context.Context, e *entry, c provision.Call) (string, error) {
	items, err := b.driver.FindByName(ctx, b.kind.calls(), wire.NameRequest{Name: string(c.Name), Parameters: e.inputs.Parameters})
	if err != nil {
		return "", err
	}
	known := provision.Record{Strays: c.ID}
	marks := b.driver.Info().Recovery.Of(b.kind.calls()).OwnerMark
	for _, item := range items {
		if item.ID != "" && !known.Holds(item.ID) && (!marks || item.MadeFor(string(c.Name))) {
			return item.ID, nil
		}
	}
	return "", nil
}

// derive works out the id by the admin's template.
func (b backend) derive(e *entry) provision.Answer {
	id, err := b.template.render(named{string(e.name), e.inputs.Parameters})
	if err == nil && !holds(id, string(e.name)) {
		err = fmt.Errorf("it gives %q, which does not hold the name", id)
	}
	if err != nil {
		e.answer, e.down = err.Error(), false
		return provision.Answer{Code: provision.InvalidArgument}
	}
	return provision.Answer{ID: id}
}

// code is the number that provision and gRPC share.
func code(err error) provision.Code { return provision.Code(wire.Code(err)) }

func opName(op provision.Op) string {
	switch op {
	case provision.Generate:
		return "generate"
	case provision.Create:
		return "create"
	case provision.Fetch:
		return "fetch"
	case provision.Find:
		return "find"
	case provision.Delete:
		return "delete"
	case provision.DeleteByName:
		return "delete-by-name"
	}
	return "other"
}
