package intents

import (
	"errors"
	"fmt"

	"github.com/custody-storage/custody/api/v1alpha1"
)

// consequence says what a word will do to a record, or why it is refused. It mirrors
// what package provision does with the word; allow_test.go holds the two together.
func consequence(intent *v1alpha1.Intent, owner Owner, word v1alpha1.Word) (string, error) {
	s := intent.Spec
	if owner.State == OwnerUnknown {
		return "", fmt.Errorf("whether %s still exists could not be found out, and everything depends on it: %s", owner.Text, or(owner.Error, "its kind is not known"))
	}
	switch s.Phase {
	case v1alpha1.PhaseReleased, v1alpha1.PhaseSweeping:
		return "", errors.New("it is released already: what is left is a tombstone, which ends by itself when the sidecar's --tombstone is over")
	}
	switch word {
	case v1alpha1.WordDelete:
		return deleteDoes(s, owner)
	case v1alpha1.WordRelease:
		return releaseDoes(s, owner)
	case v1alpha1.WordRetry:
		return retryDoes(s, owner)
	}
	return "", fmt.Errorf("%q is no decision: it is Delete, Release or Retry", word)
}

func deleteDoes(s v1alpha1.IntentSpec, owner Owner) (string, error) {
	what := thing(s)
	switch {
	case s.Origin == v1alpha1.OriginStatic:
		return "", fmt.Errorf("%s was not made here; an admin bound it by its id. Set deletionPolicy Delete on its Bucket and delete its claim, or delete it in the backend", what)
	case owner.State == OwnerReplaced:
		return "", fmt.Errorf("another %s exists, and this is the record of an earlier one of that name. Delete the new one first, or use --release", owner.Text)
	case owner.State == OwnerWants:
		return "", fmt.Errorf("%s is in use: %s exists and is not being deleted. To be rid of it, delete its claim or access", what, owner.Text)
	case s.Phase == v1alpha1.PhaseRetained:
		return what + " was kept by its deletion policy. It will be deleted in the backend; a bucket that still holds objects goes when it is empty.", nil
	case s.Phase == v1alpha1.PhaseLive && owner.State == OwnerGone:
		return what + " will be deleted in the backend. Its object vanished without passing the finalizer; after this nothing can bring it back.", nil
	case s.Phase == v1alpha1.PhaseDeleting && s.Origin == v1alpha1.OriginAdopted && s.ID != "" && !s.Proven:
		return what + " will be deleted in the backend, on your word that it is this object's: nothing else proves it.", nil
	case s.Phase == v1alpha1.PhaseDeleting:
		return "", errors.New("it is being deleted already. If it can't go on because there is no way to look, look in the backend yourself, delete what is there, and use --release")
	case s.Phase == v1alpha1.PhaseLive:
		return "", errors.New("its object is being deleted, and the sidecar goes on with that by itself")
	}
	return "", errors.New("nothing has been shown to anybody yet: the sidecar deletes what it made by itself when the object is gone")
}

func releaseDoes(s v1alpha1.IntentSpec, owner Owner) (string, error) {
	left := "If anything of that name is in the backend, it stays there and nobody will delete it."
	if s.ID != "" {
		left = "What is in the backend under the " + ids(s) + " stays there, and nobody will delete it."
	}
	switch {
	case owner.State == OwnerReplaced && s.Phase != v1alpha1.PhaseMaking:
		return "The record of the earlier " + owner.Text + " goes, and the new one is served. " + left, nil
	case owner.State == OwnerReplaced:
		return "", fmt.Errorf("another %s exists; delete that first: what the earlier one was about to make is then seen to by itself", owner.Text)
	case owner.State == OwnerWants:
		return "", fmt.Errorf("it is in use: %s exists and is not being deleted. Delete its claim or access first", owner.Text)
	case s.Phase == v1alpha1.PhaseRetained:
		return "The record goes. " + left, nil
	case s.Phase == v1alpha1.PhaseLive && owner.State == OwnerGone:
		return "The record goes. " + left, nil
	case s.Phase == v1alpha1.PhaseDeleting, s.Phase == v1alpha1.PhaseMaking:
		return "The record goes without a further look and without a tombstone, and its object is let go. " + left, nil
	}
	return "", errors.New("its object is being deleted, and the sidecar goes on with that by itself; look again in a moment")
}

func retryDoes(s v1alpha1.IntentSpec, owner Owner) (string, error) {
	switch {
	case s.Phase != v1alpha1.PhaseMaking:
		return "", fmt.Errorf("nothing is being made: its phase is %s", s.Phase)
	case owner.State != OwnerWants:
		return "", errors.New("nobody wants it any more: its object is gone or being deleted")
	case s.ID != "":
		return "", fmt.Errorf("the driver has answered the %s already, and the sidecar goes on with that", ids(s))
	case s.Attempt == "" && !s.Doubt && !s.Missed:
		return "", errors.New("no create is unaccounted for: the sidecar tries again by itself")
	}
	return "The driver is asked to create it once more, without a look. If the earlier call did make one, there will be two.", nil
}

func or(text, other string) string {
	if text != "" {
		return text
	}
	return other
}
