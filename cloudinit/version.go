package cloudinit

import (
	"regexp"
	"strconv"
	"strings"

	"slipway.dev/slipway/machineconfig"
)

// Oldest is the version that a target is taken for when it names none.
const Oldest = "22.4"

// feature is something that only some versions of cloud-init do.
type feature struct {
	about string
	since string // first version that has it
}

// What differs between versions, as it was measured with 22.4.2 and 25.1.4 and read in the source between them.
var (
	networkOverHTTP = feature{"network-config is read from a URL", "24.3"}
	networkdVirtual = feature{"the networkd renderer writes .netdev files of bonds, VLANs and bridges", "99"}
	caCertsKey      = feature{"ca_certs is spelled with an underscore", "22.3"}
)

func has(t machineconfig.Target, f feature) bool { return CompareVersions(tool(t), f.since) >= 0 }

func tool(t machineconfig.Target) string {
	if parseVersion(t.Tool) == nil {
		return Oldest
	}
	return t.Tool
}

// CompareVersions returns -1, 0 or +1 for two versions such as 22.4.2 and 24.1, by their numbers. A distribution's suffix
// does not count, and a missing number is 0.
func CompareVersions(a, b string) int {
	x, y := parseVersion(a), parseVersion(b)
	for i := range max(len(x), len(y)) {
		var p, q int
		if i < len(x) {
			p = x[i]
		}
		if i < len(y) {
			q = y[i]
		}
		switch {
		case p < q:
			return -1
		case p > q:
			return 1
		}
	}
	return 0
}

var versionRE = regexp.MustCompile(`^[0-9]{1,6}(\.[0-9]{1,6}){0,3}`)

// parseVersion returns the leading numbers of a version, nil if there are none.
func parseVersion(s string) []int {
	var out []int
	digits := versionRE.FindString(s)
	if digits == "" {
		return nil
	}
	for part := range strings.SplitSeq(digits, ".") {
		n, err := strconv.Atoi(part)
		if err != nil {
			return nil
		}
		out = append(out, n)
	}
	return out
}
