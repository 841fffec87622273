package provision

import (
	"strings"
	"testing"

	"slipway.dev/slipway/ignition"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/delivery"
	"slipway.dev/slipway/pxe"
)

const secureBase = "https://10.0.0.1:8443"

func TestAConfidentialSiteSendsSecretsOverTLSOnly(t *testing.T) {
	for name, c := range map[string]struct {
		format    inventory.ImageConfig
		speaksTLS bool
		config    string
		isolated  bool
		boots     bool
		in        string // in the script
		plain     string // in the document over HTTP; "" when it is refused
	}{
		"a loader that speaks TLS fetches the initrd over it": {
			format: inventory.ImageConfig{Format: "cloud-init", Version: "24.4", InitrdPath: "/var/lib/cloud/seed/nocloud"}, speaksTLS: true, config: withSecret,
			boots: true, in: "initrd --name config.cpio " + secureBase + "/boot/",
		},
		"a loader that does not is not given secrets": {
			format: inventory.ImageConfig{Format: "cloud-init", Version: "24.4"}, config: withSecret, in: "does not speak it",
		},
		"Ignition fetches the rest over TLS by itself": {
			format: inventory.ImageConfig{Format: "ignition", Version: "3.3.0"}, config: withSecret, boots: true, in: "config=" + base + "/boot/",
			plain: secureBase + "/boot/",
		},
		"without secrets nothing changes": {
			format: inventory.ImageConfig{Format: "cloud-init", Version: "24.4"}, config: "host: {timezone: Europe/Berlin}", boots: true, in: "config=" + base, plain: "Berlin",
		},
		"the site's rule counts, also for an isolated profile": {
			format: inventory.ImageConfig{Format: "cloud-init", Version: "24.4"}, config: withSecret, isolated: true, in: "does not speak it",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := configRack(t)
			ca := func() []byte { return []byte("-----BEGIN CERTIFICATE-----\n") }
			r.engine.cfg.Confidential = &delivery.Confidential{Port: 8443, CA: ca}
			r.engine.outfit()
			r.secret("token", canary)
			r.secret("admin-hash", "$6$salt$hash")
			r.configured("live", c.format, inventory.Profile{Config: c.config, Isolated: c.isolated})
			m := r.machine(1)
			m.arrive()
			r.engine.sessions.Heard(pxe.Client{MAC: m.mac(), Stage: pxe.StageIPXE, IPXE: pxe.IPXE{HasHTTPS: c.speaksTLS}}, inventory.EventDHCPRequest)
			session, _ := r.engine.sessions.Of(m.mac())
			script := m.script(base + "/boot/" + string(session.ID) + "/script")
			s := session.ID
			if strings.Contains(script, "kernel ") != c.boots || !strings.Contains(script, c.in) {
				t.Fatalf("script:\n%s", script)
			}
			if !c.boots {
				return
			}
			name := map[bool]string{true: "config.ign", false: "user-data"}[c.format.Format == "ignition"]
			plain, err := m.ask(s, name)
			switch {
			case c.plain == "" && !inventory.IsKind(err, inventory.Forbidden):
				t.Errorf("over HTTP: %v", err)
			case c.plain != "" && (err != nil || !strings.Contains(plain, c.plain)):
				t.Errorf("over HTTP: %v\n%s", err, plain)
			case c.plain != "" && !c.isolated && strings.Contains(plain, canary):
				t.Error("the secret is sent over HTTP")
			}
			if name == "config.ign" {
				if err := ignition.Validate([]byte(plain)).Err(); err != nil {
					t.Errorf("the first stage is no Ignition: %v", err)
				}
			}
			full, err := m.askAs(pxe.ConfigRequest{Session: s, Source: m.address(), Name: name, IsTLS: true})
			if err != nil || c.config == withSecret && !strings.Contains(full, "passwordHash") && !strings.Contains(full, "hashed_passwd") {
				t.Errorf("over TLS: %v\n%s", err, full)
			}
		})
	}
}
