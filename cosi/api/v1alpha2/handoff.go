package v1alpha2

// ManagedBySidecar tells whether the sidecar, rather than the controller, may act
// on a BucketAccess at this moment. The two must never both act, so both ask here.
//
// The controller prepares an access and hands it over with the write that sets
// status.driverName. A deletion does not take it back: the sidecar revokes first
// and then sets AnnotationSidecarCleanupFinished, which gives it to the
// controller. AnnotationControllerManagementOverride gives it to the controller
// at any time. The cleanup annotation counts only on an object that is being
// deleted, so that a forged or left-over one does not stop a live access.
//
// The answer says whose turn it is, not that the backend is clean: whether there
// is still something to revoke is read from the Intent. Source: KEP-1979.
func (a *BucketAccess) ManagedBySidecar() bool {
	if _, override := a.Annotations[AnnotationControllerManagementOverride]; override {
		return false
	}
	if a.Status.DriverName == "" {
		return false
	}
	if a.DeletionTimestamp.IsZero() {
		return true
	}
	_, finished := a.Annotations[AnnotationSidecarCleanupFinished]
	return !finished
}
