package controller

import (
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/custody-storage/custody/cosi/api/v1alpha2"
)

// Reasons that stand first in status.error and in events. Programs may compare them.
const (
	ReasonClassNotFound       = "ClassNotFound"       // the class does not exist (yet)
	ReasonBucketNotFound      = "BucketNotFound"      // the Bucket named does not exist (yet)
	ReasonBucketNotReady      = "BucketNotReady"      // the Bucket is there and not ready
	ReasonBucketDeleting      = "BucketDeleting"      // the Bucket is being deleted under its claim
	ReasonBucketRefused       = "BucketRefused"       // the API server refuses the Bucket to be made
	ReasonBoundElsewhere      = "BoundElsewhere"      // the Bucket is meant for, or bound to, another claim
	ReasonProtocolUnsupported = "ProtocolUnsupported" // the bucket does not speak a protocol that is asked for
	ReasonInUse               = "InUse"               // the claim is to go and BucketAccesses name it
	ReasonClaimNotFound       = "ClaimNotFound"       // a claim of the access does not exist (yet)
	ReasonClaimNotReady       = "ClaimNotReady"       // a claim of the access is not ready
	ReasonClaimDeleting       = "ClaimDeleting"       // a claim of the access is being deleted
	ReasonSeveralBuckets      = "SeveralBuckets"      // the class allows one bucket for an access
	ReasonModeDisallowed      = "ModeDisallowed"      // the class disallows the access mode
	ReasonSecretNameTwice     = "SecretNameTwice"     // two claims of the access are to share one Secret
	ReasonNoServiceAccount    = "NoServiceAccount"    // the class needs a serviceAccountName
	ReasonOtherDriver         = "OtherDriver"         // bucket and access class are of different drivers
	ReasonNotServed           = "NotServed"           // the access is the sidecar's, which says nothing
	ReasonHandsOff            = "HandsOff"            // an Intent stands in the way that is not ours to act on
	ReasonAnnotationIgnored   = "AnnotationIgnored"   // an annotation says that clean-up is done, the Intent does not
	ReasonClaimGone           = "ClaimGone"           // a claim vanished past its finalizer; its Bucket is kept
	ReasonOtherController     = "OtherController"     // another COSI controller writes the same objects
)

// notice is what a user is to be told of an object. The zero value: nothing.
type notice struct {
	reason, text string
	// waits marks what is no mistake and needs nobody: it gets no event.
	waits bool
	// after, if set, asks for another look then; what is waited for wakes nobody here.
	after time.Duration
}

func (n notice) empty() bool { return n.reason == "" }

func refuse(reason, format string, args ...any) notice {
	return notice{reason: reason, text: fmt.Sprintf(format, args...)}
}

func wait(reason, format string, args ...any) notice {
	return notice{reason: reason, text: fmt.Sprintf(format, args...), waits: true}
}

// pause asks for another look and says nothing.
func pause(after time.Duration) notice { return notice{after: after} }

// told is the status.error that a notice makes of the present one. The time stays where
// the text does: it says since when.
func (n notice) told(now *api.TimestampedError) *api.TimestampedError {
	if n.empty() {
		return nil
	}
	if now.Reason() == n.reason && now.Text() == n.text {
		return now
	}
	return api.NewError(time.Now(), n.reason, n.text)
}

// maxNote is what the API takes as the note of an event.
const maxNote = 1024

// warn makes an event, and counts. action is what was being done.
func (b *base) warn(object client.Object, kind, action, reason, text string) {
	b.metrics.refused.WithLabelValues(kind, reason).Inc()
	if len(text) > maxNote {
		text = strings.ToValidUTF8(text[:maxNote-3], "") + "..."
	}
	b.events.Eventf(object, nil, corev1.EventTypeWarning, reason, action, "%s", text)
}

// warnOnce is warn for what no status remembers: once an hour for each object and reason.
func (b *base) warnOnce(object client.Object, kind, action, reason, text string) {
	if b.said.first(object.GetUID(), reason) {
		b.warn(object, kind, action, reason, text)
	}
}

// once remembers what was said lately.
type once struct {
	mu   sync.Mutex
	said map[saying]time.Time
}

type saying struct {
	uid    types.UID
	reason string
}

const (
	sayAgain   = time.Hour
	maxSayings = 10_000 // beyond this it forgets: an event too many is better than memory without end
)

func newOnce() *once { return &once{said: map[saying]time.Time{}} }

func (o *once) first(uid types.UID, reason string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	s := saying{uid, reason}
	if at, ok := o.said[s]; ok && time.Since(at) < sayAgain {
		return false
	}
	o.keep(s)
	return true
}

// since tells when this was asked first for an object and a reason. What is forgotten, or
// was asked of an earlier process, begins anew.
func (o *once) since(uid types.UID, reason string) time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	s := saying{uid, reason}
	if at, ok := o.said[s]; ok {
		return at
	}
	return o.keep(s)
}

func (o *once) keep(s saying) time.Time {
	if len(o.said) >= maxSayings {
		clear(o.said)
	}
	o.said[s] = time.Now()
	return o.said[s]
}
