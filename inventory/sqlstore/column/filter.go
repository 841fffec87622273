package column

import (
	"fmt"
	"slices"
	"strings"

	"slipway.dev/slipway/inventory"
)

// HostsPerQuery is of how many hosts one query reads something.
const HostsPerQuery = 100

// InParts calls fn with the ids of some hosts at a time, as arguments of a statement. There are two numbers of them only, so that the
// statements stay prepared; a short rest repeats its last id.
func InParts(ids []inventory.HostID, fn func(args []any) error) error {
	for part := range slices.Chunk(ids, HostsPerQuery) {
		args := make([]any, HostsPerQuery)
		if len(part) <= 10 {
			args = args[:10]
		}
		for i := range args {
			args[i] = string(part[min(i, len(part)-1)])
		}
		if err := fn(args); err != nil {
			return err
		}
	}
	return nil
}

var likeEscaper = strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`)

// SearchPattern finds the words anywhere; a whole MAC is found in any spelling.
func SearchPattern(words string) string {
	if m, err := inventory.ParseMAC(words); err == nil {
		words = string(m)
	}
	return "%" + likeEscaper.Replace(strings.ToLower(words)) + "%"
}

// SearchText is what HostFilter.Search looks at; the line ends keep a match within one field.
func SearchText(h *inventory.Host) string {
	fields := []string{h.Name, h.Serial, h.UUID, h.Manufacturer, h.Product}
	for _, n := range h.NICs {
		fields = append(fields, string(n.MAC))
	}
	return strings.ToLower(strings.Join(fields, "\n"))
}

// EventWhere writes a filter as terms, each followed by AND, with its arguments. With a host or a session, the term for the kind keeps the
// database from the index of kinds. That index has the events of all hosts.
func EventWhere(f inventory.EventFilter) (where string, args []any) {
	var w Where
	kind := "kind"
	if f.HostID != "" || f.SessionID != "" {
		kind = "kind || ''"
	}
	w.Is("host_id", string(f.HostID))
	w.Is("session_id", string(f.SessionID))
	switch {
	case f.Kind == "":
	case strings.Contains(f.Kind, "."):
		w.Is(kind, f.Kind)
	default: // as in kindsOf
		n := len(w.Args) + 1
		w.Args = append(w.Args, f.Kind, f.Kind+".", f.Kind+"/")
		w.Text += fmt.Sprintf("(%[1]s = $%[2]d OR (%[1]s >= $%[3]d AND %[1]s < $%[4]d)) AND ", kind, n, n+1, n+2)
	}
	return w.Text, w.Args
}
