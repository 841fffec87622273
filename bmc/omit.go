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

// Omissions are what a reading left out, in words for people: parts that could not be read, and ends of lists. One part
// that fails does not end a reading, and nothing is cut in silence.
type Omissions struct {
	mu    sync.Mutex
	texts []string
	moreN int
}

type omissionsKey struct{}

// NoteOmissions returns a context with which a driver says what its reading left out.
func NoteOmissions(ctx context.Context) (context.Context, *Omissions) {
	o := &Omissions{}
	return context.WithValue(ctx, omissionsKey{}, o), o
}

// Omit says that a reading left something out.
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

// Texts returns what was left out, in the order in which that was noticed.
func (o *Omissions) Texts() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	all := slices.Clone(o.texts)
	if o.moreN > 0 {
		all = append(all, fmt.Sprintf("and %d more", o.moreN))
	}
	return all
}
