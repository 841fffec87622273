package controllers

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// Bootstraps remembers machines that boot with the data of a Secret. It knows whose host asks for the data now, and which
// version of them Slipway found usable. It is a cache, by object: after a restart hosts ask again, and data are checked
// again. The zero value is empty. Many goroutines may call it.
type Bootstraps struct {
	mu     sync.Mutex
	asked  map[types.NamespacedName]bool
	passed map[types.NamespacedName]string
}

// Ask notes that the host of a machine boots and asks for its data.
func (b *Bootstraps) Ask(key types.NamespacedName) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.asked == nil {
		b.asked = map[types.NamespacedName]bool{}
	}
	b.asked[key] = true
}

// IsAsked reports whether the host of a machine waits for its data.
func (b *Bootstraps) IsAsked(key types.NamespacedName) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.asked[key]
}

// Answered notes that the host has its data, or that they cannot be used.
func (b *Bootstraps) Answered(key types.NamespacedName) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.asked, key)
}

// Pass notes that a version of the data was found usable. The owner is part of what passed: an object that is made again
// under the same name has its data checked again.
func (b *Bootstraps) Pass(key types.NamespacedName, owner, version string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.passed == nil {
		b.passed = map[types.NamespacedName]string{}
	}
	b.passed[key] = owner + "\x00" + version
}

// HasPassed reports whether that version was found usable.
func (b *Bootstraps) HasPassed(key types.NamespacedName, owner, version string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.passed[key] == owner+"\x00"+version
}

// Forget drops what is known of an object that is gone.
func (b *Bootstraps) Forget(key types.NamespacedName) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.asked, key)
	delete(b.passed, key)
}
