package v1alpha1

import "fmt"

// FormatVersion is the format of Intents that this program writes, and the newest
// that it can read.
const FormatVersion = 1

// FormatError says that an Intent must be left alone because of its format.
type FormatError struct {
	Intent string // name of the Intent
	Found  int32  // its format
	Known  int32  // the newest format that this program knows
}

// Error says what to do.
func (e *FormatError) Error() string {
	if e.Found > e.Known {
		return fmt.Sprintf("intent %q has format %d and this program knows formats up to %d: it is left as it is; "+
			"upgrade every Custody controller, sidecar, guard and command line to the release that wrote it",
			e.Intent, e.Found, e.Known)
	}
	return fmt.Sprintf("intent %q has format %d and formats begin with 1: it was not written by Custody and is left as it is; "+
		"find out with \"kubectl get intents.custody.dev %s -o yaml --show-managed-fields\" who wrote it",
		e.Intent, e.Found, e.Intent)
}

// ReadFormat tells whether this program may read, and then write, an Intent. The
// error is a *FormatError. It must be asked before anything else of the Intent is
// believed, and on an error nothing may be done to the Intent or to what it names.
func ReadFormat(intent *Intent) error {
	if intent.Spec.FormatVersion < 1 || intent.Spec.FormatVersion > FormatVersion {
		return &FormatError{Intent: intent.Name, Found: intent.Spec.FormatVersion, Known: FormatVersion}
	}
	return nil
}
