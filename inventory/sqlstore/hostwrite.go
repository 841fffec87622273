package sqlstore

import (
	"fmt"
	"slices"
	"strings"

	"slipway.dev/slipway/inventory/sqlstore/column"
)

// hostFields are the columns of a host that callers set, in the order of hostArgs.
var hostFields = strings.Fields(`name state state_reason state_since_at in_maintenance is_protected is_adopted
uuid serial asset_tag manufacturer product arch firmware memory_mib site row rack unit labels facts profile
profile_revision disk_boot is_armed taints root_disk keep_disks is_dirty failure_n reuse_key freed_at search_text
is_cordoned is_retained place_height place_face port refs updated_at last_seen_at identified_at`)

// SQLite writes an index again for each of its columns that a statement names, changed or not, each on another page. So
// what an index has is named only when it changed: the state often, the others hardly ever.
var (
	hostKeys = []string{"name", "uuid", "serial", "rack", "profile", "port"}

	updateHostKeys  = column.NewUpdate("hosts", hostFields, hostMark)
	updateHostState = column.NewUpdate("hosts", hostFields, hostMark, hostKeys...)
	updateHostRow   = column.NewUpdate("hosts", hostFields, hostMark, append([]string{"state"}, hostKeys...)...)

	insertHostSQL = column.NewInsert("hosts", slices.Concat([]string{"id"}, hostFields, []string{"created_at"}), hostMark)
)

// hostMark is the parameter of a column; no profile is NULL.
func hostMark(field string, n int) string {
	if field == "profile" {
		return fmt.Sprintf("NULLIF($%d, '')", n)
	}
	return fmt.Sprintf("$%d", n)
}
