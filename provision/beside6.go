package provision

import (
	"encoding/hex"
	"fmt"

	"slipway.dev/slipway/inventory"
)

// Foreign6 notes that a machine took the answer of another DHCPv6 server, which is known by its DUID alone: a warning,
// because only the machine says so. In a subnet of another mode than full such a server is expected.
func (e *Engine) Foreign6(subnet, iface string, duid []byte) {
	id := hex.EncodeToString(duid[:min(len(duid), 130)])
	e.recorder.take(note{do: func(tx inventory.Tx) error {
		n, err := tx.FindSubnet(subnet)
		if err != nil || n.Mode != inventory.ModeFull {
			return ignoreNotFound(err)
		}
		return e.openIssue(tx, inventory.Issue{
			Key:  inventory.IssueForeignDHCP + "6/" + iface + "/" + id,
			Type: inventory.IssueForeignDHCP, Severity: inventory.SeverityWarning, Subnet: subnet,
			Cause: fmt.Sprintf("a machine on %s took the answer of another DHCPv6 server, DUID %s", iface, id),
			Hint:  fmt.Sprintf("find it with tcpdump -i %s udp port 547, and switch it off, or let it give the addresses: slipway subnet update %s --mode reservations", iface, subnet),
		})
	}})
}
