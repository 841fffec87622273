package doctor

import (
	"fmt"
	"slices"
	"strings"

	"slipway.dev/slipway/pxe"
)

// SecureHost is a host with Secure Boot on, and the certificates that its firmware trusts; none: not known.
type SecureHost struct {
	Name string
	DB   []string
}

// The authorities for which Microsoft signs what is not Windows. The older one ended in June 2026: new shims are signed for
// the newer one alone.
const (
	microsoft2011 = "Microsoft Corporation UEFI CA 2011"
	microsoft2023 = "Microsoft UEFI CA 2023"
)

// JudgeSecureBoot counts the hosts with Secure Boot on that start none of the signed loaders here, and those that the next
// shim will lose. There is nothing to say without such hosts.
func JudgeSecureBoot(hosts []SecureHost, loaders map[string][]pxe.Signer) (checks []Check) {
	if len(hosts) == 0 {
		return nil
	}
	var refused, losing, unknown []string
	for _, h := range hosts {
		switch {
		case len(h.DB) == 0:
			unknown = append(unknown, h.Name)
			continue
		case len(loaders) > 0 && !startsOne(h.DB, loaders):
			refused = append(refused, h.Name)
		}
		if slices.Contains(h.DB, microsoft2011) && !slices.Contains(h.DB, microsoft2023) {
			losing = append(losing, h.Name)
		}
	}
	const name = "Secure Boot"
	add := func(list []string, format, hint string) {
		if len(list) > 0 {
			checks = append(checks, Check{Name: name, Status: Warning, Detail: fmt.Sprintf(format, len(list), some(list)), Hint: hint})
		}
	}
	add(refused, "%d hosts trust none of the signed loaders here, and do not boot: %s", "slipway host explain says which certificate is missing")
	add(losing, "%d hosts trust Microsoft's certificate of 2011 and not that of 2023, and lose the network boot with the next shim: %s",
		"update their firmware, which brings the new certificate, and inspect them again; keep the shim of today until then")
	add(unknown, "of %d hosts the certificates that their firmware trusts are not known: %s", "inspect them: slipway host inspect")
	if len(checks) == 0 {
		checks = []Check{{Name: name, Status: OK, Detail: fmt.Sprintf("%d hosts have it on, and trust the loaders here and the next shim", len(hosts))}}
	}
	return checks
}

// startsOne reports whether a firmware starts at least one of the loaders.
func startsOne(db []string, loaders map[string][]pxe.Signer) bool {
	for _, signers := range loaders {
		if pxe.IsTrustedBy(signers, db) {
			return true
		}
	}
	return false
}

// some names the first of many.
func some(list []string) string {
	const most = 5
	if len(list) <= most {
		return strings.Join(list, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(list[:most], ", "), len(list)-most)
}
