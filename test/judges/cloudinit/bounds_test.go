package cloudinit

import (
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"slipway.dev/slipway/cloudinit"
)

// TestOurBoundsAreTheSchemas has values at the bounds that cloud-init's schema sets, and beyond them. What the schema refuses, we warn
// of, and of nothing else.
func TestOurBoundsAreTheSchemas(t *testing.T) {
	for _, doc := range []string{
		"power_state: {mode: reboot, delay: 0}", "power_state: {mode: reboot, delay: -1}", "power_state: {mode: reboot, delay: now}",
		"power_state: {mode: reboot, delay: '+5'}", "power_state: {mode: reboot, delay: soon}", "power_state: {mode: reboot, delay: '5 min'}",
		"swap: {size: auto}", "swap: {size: 2G}", "swap: {size: 1.5G, maxsize: .5T}", "swap: {size: 2 G}", "swap: {maxsize: auto}", "swap: {size: G}",
		"mounts: [[a]]", "mounts: [[a, b, c, d, '0', '2']]", "mounts: [[a, b, c, d, '0', '2', x]]",
		"mount_default_fields: [a, b, c, d, '0', '2']", "mount_default_fields: [a, b, c, d, '0']", "mount_default_fields: [a, b, c, d, '0', '2', x]",
		"packages: [[a, b]]", "packages: [[a, b, c]]", "packages: [[a]]",
		"chpasswd: {list: ['a:b', 'c:RANDOM']}", "chpasswd: {list: ['a']}", "chpasswd: {list: [':a']}",
		"landscape: {client: {tags: 'a,b-c'}}", "landscape: {client: {tags: 'a, b'}}",
		"lxd: {bridge: {mode: new, mtu: -1}}", "lxd: {bridge: {mode: new, mtu: -2}}",
		"users: [{name: a}]", "users: [{snapuser: a}]", "users: [{name: a, snapuser: b}]",
	} {
		for _, r := range readers(t) {
			var v any
			if err := yaml.Unmarshal([]byte(doc), &v); err != nil {
				t.Fatal(err)
			}
			theirs := r.schema(t, "schema-cloud-config-v1.json").Validate(plain(t, v))
			_, report := cloudinit.CheckDocument(r.version, []byte("#cloud-config\n"+doc+"\n"))
			if (theirs == nil) != (len(report) == 0) {
				t.Errorf("cloud-init %s, %s: the schema says %v, we say %v", r.version, doc, theirs, report)
			}
			if report.HasErrors() && !strings.Contains(doc, "users:") {
				t.Errorf("cloud-init %s, %s: a bound is no error: %v", r.version, doc, report)
			}
		}
	}
}
