package rbd

import "sync"

// keyed is a set of locks that nobody waits for. Its zero value is ready.
type keyed struct {
	mu   sync.Mutex
	held map[string]bool
}

func (k *keyed) lock(key string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.held[key] {
		return false
	}
	if k.held == nil {
		k.held = map[string]bool{}
	}
	k.held[key] = true
	return true
}

func (k *keyed) unlock(key string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.held, key)
}
