package sqlstore

import (
	"fmt"
	"slices"
	"strings"
)

// hostFields are the columns of a host that callers set, in the order of hostArgs.
var hostFields = strings.Fields(`name state state_reason state_since_at in_maintenance is_protected is_adopted
uuid serial asset_tag manufacturer product arch firmware memory_mib site row rack unit labels facts profile
profile_revision disk_boot is_armed taints root_disk keep_disks is_dirty failure_n reuse_key freed_at search_text
is_cordoned is_retained place_height place_face port refs`)

// SQLite writes an index again for each of its columns that a statement names, changed or not, each on another page. So
// what an index has is named only when it changed: the state often, the others hardly ever.
var (
	hostKeys = []string{"name", "uuid", "serial", "rack", "profile", "port"}

	updateHostKeys  = newHostUpdate()
	updateHostState = newHostUpdate(hostKeys...)
	updateHostRow   = newHostUpdate(append([]string{"state"}, hostKeys...)...)

	insertHostSQL = fmt.Sprintf(`INSERT INTO hosts (id, %s, created_at, updated_at, last_seen_at, identified_at, version) VALUES (%s, 1)`,
		strings.Join(hostFields, ", "), strings.Join(hostMarks(), ", "))
)

// hostMarks are the parameters of insertHostSQL.
func hostMarks() (marks []string) {
	marks = []string{"$1"}
	for i, field := range append(slices.Clone(hostFields), "created_at", "updated_at", "last_seen_at", "identified_at") {
		marks = append(marks, hostMark(field, i+2))
	}
	return marks
}

// hostMark is the parameter of a column; no profile is NULL.
func hostMark(field string, n int) string {
	if field == "profile" {
		return fmt.Sprintf("NULLIF($%d, '')", n)
	}
	return fmt.Sprintf("$%d", n)
}

// hostUpdate is a statement that updates a host, and which of hostFields it leaves as they are.
type hostUpdate struct {
	query   string
	without []bool
}

func newHostUpdate(without ...string) (u hostUpdate) {
	var sets []string
	set := func(field string) { sets = append(sets, field+" = "+hostMark(field, len(sets)+1)) }
	for _, field := range hostFields {
		isLeft := slices.Contains(without, field)
		u.without = append(u.without, isLeft)
		if !isLeft {
			set(field)
		}
	}
	set("updated_at")
	set("last_seen_at")
	set("identified_at")
	u.query = fmt.Sprintf(`UPDATE hosts SET %s, version = version + 1 WHERE id = $%d AND version = $%d`, strings.Join(sets, ", "), len(sets)+1, len(sets)+2)
	return u
}

// args leaves out of hostArgs, and what follows them, what the statement does.
func (u *hostUpdate) args(all []any) []any {
	kept := make([]any, 0, len(all))
	for i, a := range all {
		if i >= len(u.without) || !u.without[i] {
			kept = append(kept, a)
		}
	}
	return kept
}
