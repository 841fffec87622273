package bmc

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"slipway.dev/slipway/inventory"
)

// mostOmitted bounds how many omissions of a reading are listed; the rest is counted.
const mostOmitted = 20

// Omissions are what a driver could not read, in words: parts, and ends of lists. One part that fails does not end a
// reading, and no list is truncated in silence.
type Omissions struct {
	mu    sync.Mutex
	texts []string
	moreN int
}

type omissionsKey struct{}

// NoteOmissions returns a context in which a driver notes what it could not read.
func NoteOmissions(ctx context.Context) (context.Context, *Omissions) {
	o := &Omissions{}
	return context.WithValue(ctx, omissionsKey{}, o), o
}

// Omit notes something that a driver could not read.
func Omit(ctx context.Context, format string, args ...any) {
	o, ok := ctx.Value(omissionsKey{}).(*Omissions)
	if !ok {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	text := inventory.Clean(fmt.Sprintf(format, args...), 400)
	switch {
	case slices.Contains(o.texts, text):
	case len(o.texts) >= mostOmitted:
		o.moreN++
	default:
		o.texts = append(o.texts, text)
	}
}

// Texts returns the omissions in the order of their notes.
func (o *Omissions) Texts() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	all := slices.Clone(o.texts)
	if o.moreN > 0 {
		all = append(all, fmt.Sprintf("and %d more", o.moreN))
	}
	return all
}
