// Package auditchain makes the hashes that chain the entries of the audit, and checks them. A change of an entry breaks the chain, and
// so does the removal of one.
package auditchain

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"slipway.dev/slipway/inventory"
)

// HashAfter returns the hash of an entry whose predecessor has a hash, "" for the first of all. It is over everything that is
// stored of the entry.
func HashAfter(a *inventory.Audit, before string) string {
	text, _ := json.Marshal([]any{ // of texts and numbers
		before, a.ID, a.At.UnixMilli(), a.Actor, a.Role, a.Via, a.Source, a.RequestID, a.Operation, a.Noun, a.Name, string(a.HostID),
		string(a.Change), a.Status, a.Detail, string(a.Before), string(a.After), a.Version, a.UndoOf, a.Fixed,
	})
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// AuditChain is what a look at the whole audit has found.
type AuditChain struct {
	EntryN    int64  `json:"entryN" doc:"Entries that were checked"`
	HeadID    int64  `json:"headID,omitempty" doc:"The newest entry"`
	Head      string `json:"head,omitempty" doc:"Its hash. If you note it elsewhere, you can show later that nothing before it has changed"`
	IsWhole   bool   `json:"isWhole" doc:"No entry was changed, taken out or put in"`
	BrokenID  int64  `json:"brokenID,omitempty" doc:"The first entry that does not fit"`
	Reason    string `json:"reason,omitempty" doc:"What does not fit"`
	HasNoted  bool   `json:"hasNoted,omitempty" doc:"The hash that was noted before is in the chain"`
	UnhashedN int64  `json:"unhashedN,omitempty" doc:"Entries of versions without the chain; the first hash covers them, too"`
}

// Check reads all entries in their order, a few at a time, and looks whether each fits the one before. Noted is a hash
// that the chain had at an earlier time, "" for none.
func Check(noted string, read func(after int64) ([]inventory.Audit, error)) (c AuditChain, err error) {
	broken := func(id int64, format string, args ...any) (AuditChain, error) {
		c.BrokenID, c.Reason = id, fmt.Sprintf(format, args...)
		return c, nil
	}
	for {
		some, err := read(c.HeadID)
		if err != nil {
			return c, err
		}
		for i := range some {
			a := &some[i]
			if a.ID != c.HeadID+1 {
				return broken(c.HeadID+1, "entry %d is missing", c.HeadID+1)
			}
			c.EntryN, c.HeadID, c.Head = c.EntryN+1, a.ID, HashAfter(a, c.Head)
			switch {
			case a.Hash == "" && c.UnhashedN+1 == c.EntryN:
				c.UnhashedN++
			case a.Hash != c.Head:
				return broken(a.ID, "entry %d, or one before it, is not as it was written", a.ID)
			}
			c.HasNoted = c.HasNoted || noted == c.Head
		}
		if len(some) == 0 {
			break
		}
	}
	if noted != "" && !c.HasNoted {
		return broken(c.HeadID, "no entry has the hash that was noted: somebody removed entries at the end, or wrote the chain again")
	}
	c.IsWhole = true
	return c, nil
}
