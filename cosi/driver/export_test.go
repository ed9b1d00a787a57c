package driver

// Users is how many calls hold or wait for the turn of a key; -1 if nothing is kept of it.
func Users(d *Driver, key string) int {
	d.names.mu.Lock()
	defer d.names.mu.Unlock()
	e := d.names.entries[key]
	if e == nil {
		return -1
	}
	return e.users
}
