package provision

import (
	"testing"
	"time"
)

// Ids of boots stand in the store in the order of their time, and tell nobody what another one is.
func TestIDsOfSessionsSortByTimeAndCannotBeGuessed(t *testing.T) {
	at := time.Date(2026, 11, 24, 18, 0, 0, 0, time.UTC)
	seen := map[string]bool{}
	for i := range 1000 {
		now := at.Add(time.Duration(i) * time.Second)
		id, next := string(newSessionID(now)), string(newSessionID(now.Add(time.Second)))
		if len(id) != 32 || id >= next {
			t.Fatalf("%q is not before %q, of a second later", id, next)
		}
		if random := id[8:]; seen[random] || seen[random[:12]] || seen[random[12:]] {
			t.Fatalf("a part of %q was there before", id)
		}
		for _, part := range []string{id[8:], id[8:20], id[20:]} {
			seen[part] = true
		}
	}
}
