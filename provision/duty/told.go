package duty

import (
	"slices"
	"time"

	"slipway.dev/slipway/inventory"
)

// Told is what an instance tells the others of itself with its signs of life.
type Told struct {
	Addresses []string // where machines reach it
	Links     []string // where other instances reach it
	CutOff    string   // why the instance with the engine does not answer this one; "" if it does, or if this is that one
}

func (t *Told) equals(o *Told) bool {
	return slices.Equal(t.Addresses, o.Addresses) && slices.Equal(t.Links, o.Links) && t.CutOff == o.CutOff
}

// into writes it into the row of the instance, and reports whether that has changed. Now is the time of the database.
func (t *Told) into(row *inventory.Instance, now time.Time) (changed bool) {
	if t.equals(&Told{row.Addresses, row.Links, row.CutOff}) {
		return false
	}
	row.Addresses, row.Links = slices.Clone(t.Addresses), slices.Clone(t.Links)
	switch {
	case t.CutOff == "":
		row.CutOffAt = time.Time{}
	case row.CutOff == "":
		row.CutOffAt = now
	}
	row.CutOff = t.CutOff
	return true
}
