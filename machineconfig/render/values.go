package render

import (
	"encoding/base64"
	"strings"

	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/pointer"
)

// values reports secrets that do not fit the field that names them: a password that is stored as it is could log nobody in and would
// stand on the disk, and a line break in a value of one line begins another setting.
func values(in *Input, c *machineconfig.Config) (report machineconfig.Report) {
	check := func(path, ref string, fits func(text string) bool, what, hint string) {
		name, isSecret := strings.CutPrefix(ref, "secret://")
		if !isSecret || strings.Contains(name, "#") || !in.HasSecret(name) {
			return
		}
		value, err := in.Secret(name)
		if err != nil {
			report = append(report, finding(path, err))
		} else if !fits(strings.TrimSpace(string(value))) {
			report.Errorf(path, "invalid", "secret %s %s", name, what).Hint = hint
		}
	}
	const noHash, openssl = "holds no hash of a password", "store what this prints: openssl passwd -6"
	for _, u := range c.Users {
		check("/users/"+u.Name+"/passwordHash", u.PasswordHash, isHash, noHash, openssl)
	}
	if d := c.DefaultUser; d != nil {
		check("/defaultUser/passwordHash", d.PasswordHash, isHash, noHash, openssl)
	}
	for _, m := range c.Storage.Mounts {
		check(pointer.Add("/storage/mounts", m.MountPoint)+"/password", m.Password, isLine, "has a line break, and a password of a mount is one line", "store the password alone")
	}
	const noKey, wg = "holds no key of WireGuard", "store what this prints: wg genkey"
	for _, w := range c.Network.WireGuards {
		at := "/network/wireguards/" + w.Name
		check(at+"/privateKey", w.PrivateKey, isKey, noKey, wg)
		for _, p := range w.Peers {
			check(pointer.Add(at+"/peers", p.PublicKey)+"/presharedKey", p.PresharedKey, isKey, noKey, "store what this prints: wg genpsk")
		}
	}
	return report
}

func isHash(text string) bool {
	return isLine(text) && (strings.HasPrefix(text, "$") || strings.HasPrefix(text, "!") || text == "*")
}

func isLine(text string) bool { return text != "" && !strings.ContainsAny(text, "\r\n\x00") }

func isKey(text string) bool {
	b, err := base64.StdEncoding.DecodeString(text)
	return err == nil && len(b) == 32
}
