package column

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"slipway.dev/slipway/inventory"
)

// Edited is a field of a row that other servers read all the time, and that somebody may have edited by hand. It reads what fits, and
// leaves out the rest. The other servers print such texts, and connect to such addresses. If one row were an error, all of them would stop.
type Edited struct{ read func(text string) }

// Read reads a column of text.
func (e Edited) Read(v any) error {
	s, ok := v.(string)
	if !ok {
		return fmt.Errorf("it holds %T, not text", v)
	}
	e.read(s)
	return nil
}

const (
	wordsAtMost  = 500 // bytes
	placesAtMost = 64
)

// Name reads a name. Another text becomes a name that resembles it.
func Name(p *string) Edited {
	return Edited{func(s string) {
		if *p = s; inventory.CheckName("name", s) != nil {
			name := inventory.NameFrom(inventory.Clean(s, 200), "unreadable")
			*p = strings.Trim(name[:min(len(name), 63)], "-")
		}
	}}
}

// Words reads a sentence for people.
func Words(p *string) Edited {
	return Edited{func(s string) { *p = inventory.Clean(s, wordsAtMost) }}
}

// Addresses reads a list of addresses of IP.
func Addresses(p *[]string) Edited { return places(p, netip.ParseAddr) }

// Links reads a list of addresses of IP with ports.
func Links(p *[]string) Edited { return places(p, netip.ParseAddrPort) }

// places leaves out what parse refuses.
func places[T any](p *[]string, parse func(string) (T, error)) Edited {
	return Edited{func(s string) {
		var all []string
		_ = json.Unmarshal([]byte(s), &all) // an empty text is an empty list, and what is no list has no address
		all = slices.DeleteFunc(all, func(place string) bool { _, err := parse(place); return err != nil })
		*p = all[:min(len(all), placesAtMost)]
	}}
}
