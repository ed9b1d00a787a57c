package sidecar

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/custody-storage/custody/api/v1alpha1"
	cosi "github.com/custody-storage/custody/cosi/api/v1alpha2"
	"github.com/custody-storage/custody/provision"
)

// The words of the protocol and those of the stored form. They are the same but for the type; a word that is not here
// is of a newer format or written by hand, and is not acted on.
var (
	phases = map[v1alpha1.Phase]provision.Phase{
		v1alpha1.PhaseMaking:   provision.PhaseMaking,
		v1alpha1.PhaseLive:     provision.PhaseLive,
		v1alpha1.PhaseDeleting: provision.PhaseDeleting,
		v1alpha1.PhaseReleased: provision.PhaseReleased,
		v1alpha1.PhaseSweeping: provision.PhaseSweeping,
		v1alpha1.PhaseRetained: provision.PhaseRetained,
	}
	origins = map[v1alpha1.Origin]provision.Origin{
		v1alpha1.OriginCreated: provision.OriginCreated,
		v1alpha1.OriginStatic:  provision.OriginStatic,
		v1alpha1.OriginAdopted: provision.OriginAdopted,
	}
	words = map[v1alpha1.Word]provision.Word{
		"":                   provision.WordNone,
		v1alpha1.WordDelete:  provision.WordDelete,
		v1alpha1.WordRelease: provision.WordRelease,
		v1alpha1.WordRetry:   provision.WordRetry,
	}
)

// stored is the key of a value, the inverse of the maps above.
func stored[K, V comparable](m map[K]V, value V) K {
	for k, v := range m {
		if v == value {
			return k
		}
	}
	var none K
	return none
}

// fromIntent fills in what an Intent keeps. It fails on words it doesn't know.
func fromIntent(r *provision.Record, intent *v1alpha1.Intent) error {
	s := intent.Spec
	var known [3]bool
	r.Phase, known[0] = phases[s.Phase]
	r.Origin, known[1] = origins[s.Origin]
	r.Word, known[2] = words[s.Word]
	for i, word := range []string{string(s.Phase), string(s.Origin), string(s.Word)} {
		if !known[i] {
			return fmt.Errorf("intent %q says %q, a word that this program does not know", intent.Name, word)
		}
	}
	r.ID, r.Strays = s.ID, provision.JoinIDs(s.StrayIDs...)
	r.Attempt = provision.Nonce(s.Attempt)
	r.Doubt, r.Proven, r.Missed, r.Linger = s.Doubt, s.Proven, s.Missed, s.Linger
	r.Rev = intent.ResourceVersion
	return nil
}

// toIntent writes a record into an Intent: all of it, and what was answered with the id, in one write.
func toIntent(intent *v1alpha1.Intent, r provision.Record, e *entry, now time.Time) {
	s := &intent.Spec
	s.Phase, s.Origin, s.Word = stored(phases, r.Phase), stored(origins, r.Origin), stored(words, r.Word)
	if s.ID != r.ID {
		s.Info = nil // it was of another id
	}
	s.ID, s.StrayIDs = r.ID, provision.SplitIDs(r.Strays)
	s.Attempt = string(r.Attempt)
	s.Doubt, s.Proven, s.Missed, s.Linger = r.Doubt, r.Proven, r.Missed, r.Linger
	if r.ID != "" && e.payload.id == r.ID && len(e.payload.info) > 0 {
		s.Info = e.payload.info
	}
	switch released := r.Phase == provision.PhaseReleased || r.Phase == provision.PhaseSweeping; {
	case !released:
		s.ReleasedAt = nil
	case s.ReleasedAt == nil:
		s.ReleasedAt = &metav1.Time{Time: now}
	}
	s.Owner = e.owner // a Bucket that its claim has made again has another UID
}

// newIntent is the Intent of a name, without the record.
func (a *adapter) newIntent(e *entry) *v1alpha1.Intent {
	k := a.kind.intents()
	intent := &v1alpha1.Intent{ObjectMeta: metav1.ObjectMeta{
		Name:   v1alpha1.IntentName(k, a.driverName, string(e.name)),
		Labels: v1alpha1.Labels(k, a.driverName),
	}}
	intent.Spec = v1alpha1.IntentSpec{
		FormatVersion: v1alpha1.FormatVersion,
		ClusterUID:    a.clusterUID,
		Owner:         e.owner,
		Kind:          k,
		Driver:        a.driverName,
		Name:          string(e.name),
		Inputs:        e.inputs,
	}
	return intent
}

// hold says whether an Intent is ours to act on, and if not, why.
func (a *adapter) hold(r *provision.Record, intent *v1alpha1.Intent, e *entry) note {
	s := intent.Spec
	if err := v1alpha1.ReadFormat(intent); err != nil {
		r.Hold = provision.HoldFormat
		return note{v1alpha1.ReasonNewerFormat, err.Error()}
	}
	if err := fromIntent(r, intent); err != nil {
		r.Hold = provision.HoldFormat
		return note{v1alpha1.ReasonNewerFormat, err.Error() + "; it is left as it is: upgrade, or find out who wrote it"}
	}
	switch {
	case s.ClusterUID != a.clusterUID:
		r.Hold = provision.HoldCluster
		return note{v1alpha1.ReasonOtherCluster, fmt.Sprintf("intent %q is of the cluster %s and this is %s: it came with a backup, and what it names belongs there; see docs/backup.md on how to bind again", intent.Name, s.ClusterUID, a.clusterUID)}
	case s.Driver != a.driverName:
		r.Hold = provision.HoldDriver
		return note{v1alpha1.ReasonOtherDriver, fmt.Sprintf("intent %q is of the driver %s, not of %s: this name was asked of another driver before; make a new claim", intent.Name, s.Driver, a.driverName)}
	case s.Name != string(e.name) || s.Kind != a.kind.intents():
		r.Hold = provision.HoldOwner
		return note{v1alpha1.ReasonOtherOwner, fmt.Sprintf("intent %q is the record of the %s %q, not of the %s %q: it was not written by Custody", intent.Name, s.Kind, s.Name, a.kind.intents(), e.name)}
	case e.object == nil || r.Proven || e.view.proven || s.Owner.UID == e.object.GetUID():
		// Where the name holds the UID of who asked, it is the name that counts: a Bucket that was removed by force and
		// made again by its claim is served again from its Intent.
		return note{}
	case e.view.static && r.Origin == provision.OriginStatic && e.view.given == r.ID:
		return note{} // made by hand, removed, made by hand again
	}
	if r.Word == provision.WordRelease && r.Phase != provision.PhaseMaking {
		// An admin's word is about what the record serves, and that is gone. The new object is looked at afterwards.
		r.Goal, r.Bound = provision.GoalGone, false
		return note{}
	}
	r.Hold = provision.HoldOwner
	return note{v1alpha1.ReasonOtherOwner, fmt.Sprintf("intent %q is the record of an earlier %s of this name (UID %s): what it names is not this object's; choose another name, or let go of what the earlier one had with custody intents resolve %s --release", intent.Name, s.Owner.Kind, s.Owner.UID, intent.Name)}
}

// finalizers tells which of the finalizers that matter are on an object.
func finalizers(o client.Object) (ours, upstream bool) {
	for _, f := range o.GetFinalizers() {
		ours = ours || f == v1alpha1.ProtectionFinalizer
		upstream = upstream || f == cosi.ProtectionFinalizer
	}
	return ours, upstream
}
