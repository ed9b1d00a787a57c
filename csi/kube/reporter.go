package kube

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	core "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/flowcontrol"
)

const (
	queued   = 64               // events that wait
	perMin   = 30               // events a minute, over long
	burst    = 20               // and at once
	quiet    = 10 * time.Minute // the same is not said again for so long
	pageSize = 500
	maxNote  = 1024 // events.k8s.io/v1
)

// Event is what became of a volume. It holds no secret.
type Event struct {
	Handle string // the volume's id in CSI
	Reason string
	Action string
	Note   string
}

// TakenOver says that a volume was taken from a node that had not given it back. Source: issue ceph-csi#578, where people
// could not tell why a volume moved or did not.
func TakenOver(handle, from, to string) Event {
	return Event{handle, "VolumeTakenOver", "TakeOver", fmt.Sprintf("Node %s had not given the volume back. It was fenced, and node %s has the volume now.", from, to)}
}

// Lost says that a node that uses a volume does not have it any more.
func Lost(handle, node string) Event {
	return Event{handle, "VolumeLost", "Check", fmt.Sprintf("Node %s has lost the volume: it was fenced, and every write there fails. Pods that use it on that node must be deleted.", node)}
}

// FencedDevice says that a device was found that the cluster refuses.
func FencedDevice(handle, node, device string) Event {
	return Event{handle, "FencedDeviceFound", "Sweep", fmt.Sprintf("Device %s of node %s is fenced and of no use any more. It goes when nothing uses it.", device, node)}
}

// Reporter writes events on the PersistentVolume and its claim. What it can't write it logs; nobody waits for it.
type Reporter struct {
	API       kubernetes.Interface
	Driver    string // of the PersistentVolumes
	Component string // who reports
	Node      string // where
	// PVName gives the name that the PersistentVolume of a volume has if the provisioner made it.
	PVName func(handle string) string
	Log    *slog.Logger

	once  sync.Once
	queue chan Event
	rate  flowcontrol.PassiveRateLimiter
	said  map[Event]time.Time // used by Run only
}

func (r *Reporter) init() {
	r.once.Do(func() {
		r.queue, r.said = make(chan Event, queued), map[Event]time.Time{}
		r.rate = flowcontrol.NewTokenBucketPassiveRateLimiter(perMin/60.0, burst)
	})
}

// Report hands an event over. It never waits; where too many wait the event is dropped, and logged.
func (r *Reporter) Report(e Event) {
	r.init()
	select {
	case r.queue <- e:
	default:
		r.Log.Warn("event dropped: too many wait", "volume", e.Handle, "reason", e.Reason)
	}
}

// Run writes events until ctx ends.
func (r *Reporter) Run(ctx context.Context) {
	r.init()
	for {
		select {
		case <-ctx.Done():
			return
		case e := <-r.queue:
			if err := r.write(ctx, e); err != nil && ctx.Err() == nil {
				r.Log.Warn("event not written", "volume", e.Handle, "reason", e.Reason, "note", e.Note, "error", err)
			}
		}
	}
}

func (r *Reporter) write(ctx context.Context, e Event) error {
	now := time.Now()
	for said, at := range r.said {
		if now.Sub(at) > quiet {
			delete(r.said, said)
		}
	}
	if _, ok := r.said[e]; ok {
		return nil
	}
	if !r.rate.TryAccept() {
		return fmt.Errorf("more than %d events a minute", perMin)
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	pv, err := r.find(ctx, e.Handle)
	if err != nil {
		return err
	}
	if err := r.create(ctx, e, metav1.NamespaceDefault, core.ObjectReference{APIVersion: "v1", Kind: "PersistentVolume", Name: pv.Name, UID: pv.UID}); err != nil {
		return err
	}
	r.said[e] = now
	claim := pv.Spec.ClaimRef
	if claim == nil {
		return nil
	}
	return r.create(ctx, e, claim.Namespace, core.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID})
}

func (r *Reporter) create(ctx context.Context, e Event, namespace string, on core.ObjectReference) error {
	note := e.Note
	if len(note) > maxNote {
		note = note[:maxNote]
	}
	_, err := r.API.EventsV1().Events(namespace).Create(ctx, &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{GenerateName: on.Name + "-", Namespace: namespace}, EventTime: metav1.NowMicro(),
		ReportingController: r.Component, ReportingInstance: r.Node, Action: e.Action, Reason: e.Reason, Note: note,
		Type: core.EventTypeWarning, Regarding: on,
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("event on %s %s: %w", on.Kind, on.Name, err)
	}
	return nil
}

// find gives the volume's PersistentVolume.
func (r *Reporter) find(ctx context.Context, handle string) (*core.PersistentVolume, error) {
	api := r.API.CoreV1().PersistentVolumes()
	if name := r.PVName(handle); name != "" {
		pv, err := api.Get(ctx, name, metav1.GetOptions{})
		switch {
		case err == nil && r.of(pv, handle):
			return pv, nil
		case err != nil && !apierrors.IsNotFound(err):
			return nil, fmt.Errorf("read PersistentVolume %s: %w", name, err)
		}
	}
	page := metav1.ListOptions{Limit: pageSize}
	for {
		list, err := api.List(ctx, page)
		if err != nil {
			return nil, fmt.Errorf("look for the PersistentVolume of %s: %w", handle, err)
		}
		for n := range list.Items {
			if r.of(&list.Items[n], handle) {
				return &list.Items[n], nil
			}
		}
		if page.Continue = list.Continue; page.Continue == "" {
			return nil, fmt.Errorf("no PersistentVolume has volume %s", handle)
		}
	}
}

func (r *Reporter) of(pv *core.PersistentVolume, handle string) bool {
	return pv.Spec.CSI != nil && pv.Spec.CSI.Driver == r.Driver && pv.Spec.CSI.VolumeHandle == handle
}
