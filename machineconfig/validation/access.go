package validation

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/pointer"
)

var (
	sshdKeywordRE = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]{1,63}$`)
	sshdPatternRE = regexp.MustCompile(`^[A-Za-z0-9_*?@.!:/-]{1,128}$`)
	serviceRE     = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,62}$`)
	portRE        = regexp.MustCompile(`^([0-9]{1,5})(?:-([0-9]{1,5}))?/(tcp|udp|sctp)$`)
	metaKeyRE     = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]{0,62}$`)
	pathRE        = regexp.MustCompile(`^/[A-Za-z0-9/_.+-]{1,254}$`)
)

// access checks who may come in, and how.
type access struct{ *checker }

func (v access) check() {
	v.defaultUser()
	v.sshd()
	v.firewall()
	if s := v.c.SELinux; s != "" {
		v.oneOf("/selinux", string(s), string(machineconfig.Enforcing), string(machineconfig.Permissive), string(machineconfig.Disabled))
	}
}

func (v access) defaultUser() {
	d := v.c.DefaultUser
	if d == nil {
		return
	}
	const at = "/defaultUser"
	if d.State != "" {
		v.oneOf(at+"/state", d.State, machineconfig.KeepUser, machineconfig.RemoveUser)
	}
	u := machineconfig.User{
		Name: d.Name, Gecos: d.Gecos, Shell: d.Shell, Groups: d.Groups, PasswordHash: d.PasswordHash, LockPassword: d.LockPassword,
		Sudo: d.Sudo, SSHKeys: d.SSHKeys,
	}
	if d.State == machineconfig.RemoveUser && (u.Name+u.Gecos+u.Shell+u.PasswordHash+u.Sudo != "" || len(u.Groups)+len(u.SSHKeys) > 0 || u.LockPassword != nil) {
		v.r.Errorf(at+"/state", "conflict", "removes the user, and other fields change it").Hint = "remove them, or write state: keep"
		return
	}
	v.form(at+"/name", d.Name, accountRE, "the name of a user", accountHint)
	if slices.ContainsFunc(v.c.Users, func(u machineconfig.User) bool { return u.Name == d.Name && d.Name != "" }) {
		v.r.Errorf(at+"/name", "duplicate", "%s is one of users too", shown(d.Name)).Hint = "say it in one place"
	}
	if d.LockPassword != nil && !*d.LockPassword && d.PasswordHash == "" {
		u.LockPassword = nil // the image has a password for it
	}
	accounts(v).user(at, &u)
}

// sshdWords are keywords with a field of their own, in small letters.
var sshdWords = map[string]string{
	"passwordauthentication": "passwordAuthentication", "permitrootlogin": "permitRootLogin", "port": "ports", "allowusers": "allowUsers",
	"allowgroups": "allowGroups",
}

func (v access) sshd() {
	s := v.c.SSHD
	if s.PermitRootLogin != "" {
		v.oneOf("/sshd/permitRootLogin", s.PermitRootLogin, "yes", "no", "prohibit-password", "forced-commands-only")
	}
	for i, p := range s.Ports {
		if n, err := strconv.Atoi(p); err != nil || n < 1 || n > 65535 {
			v.invalid("/sshd/ports/"+strconv.Itoa(i), "use 1 to 65535", "%s is not a port", shown(p))
		} else if f := v.c.Firewall; f.Enabled != nil && *f.Enabled && n != 22 && !opens(f, n, "tcp") {
			v.r.Warnf("/sshd/ports/"+strconv.Itoa(i), "closed", "%d is not among the ports that the firewall opens", n).
				Hint = "add " + p + "/tcp to firewall.ports"
		}
	}
	for key, list := range map[string][]string{"allowUsers": s.AllowUsers, "allowGroups": s.AllowGroups} {
		for i, p := range list {
			v.match("/sshd/"+key+"/"+strconv.Itoa(i), p, sshdPatternRE, "a pattern of names", "write one name per item, such as admin or ops-*")
		}
	}
	for _, k := range slices.Sorted(maps.Keys(s.Settings)) {
		at := pointer.Add("/sshd/settings", k)
		switch own := sshdWords[strings.ToLower(k)]; {
		case own != "":
			v.invalid(at, "write it as sshd."+own, "%s has a field of its own", k)
		case strings.EqualFold(k, "Match") || strings.EqualFold(k, "Include"):
			v.invalid(at, "write a file below /etc/ssh/sshd_config.d", "%s cannot be said here", k)
		default:
			v.match(at, k, sshdKeywordRE, "a keyword of sshd_config", "write it as sshd_config(5) does, such as X11Forwarding")
		}
		if v.oneLine(at, s.Settings[k], 1024) && strings.TrimSpace(s.Settings[k]) == "" {
			v.r.Errorf(at, "missing", "has no value")
		}
	}
}

// opens reports whether a firewall lets a port through.
func opens(f machineconfig.Firewall, port int, protocol string) bool {
	return slices.ContainsFunc(f.Ports, func(s string) bool {
		m := portRE.FindStringSubmatch(s)
		if m == nil || m[3] != protocol {
			return false
		}
		first, _ := strconv.Atoi(m[1])
		last := first
		if m[2] != "" {
			last, _ = strconv.Atoi(m[2])
		}
		return first <= port && port <= last
	})
}

func (v access) firewall() {
	f := v.c.Firewall
	for i, s := range f.Services {
		v.match("/firewall/services/"+strconv.Itoa(i), s, serviceRE, "the name of a service", "write it as firewalld does, such as ssh or https; others as ports")
	}
	for i, p := range f.Ports {
		at := "/firewall/ports/" + strconv.Itoa(i)
		m := portRE.FindStringSubmatch(p)
		if m == nil {
			v.invalid(at, "write it as 443/tcp or 30000-32767/udp", "%s is not a port with its protocol", shown(p))
			continue
		}
		first, _ := strconv.Atoi(m[1])
		last := first
		if m[2] != "" {
			last, _ = strconv.Atoi(m[2])
		}
		if first < 1 || last > 65535 || first > last {
			v.invalid(at, "ports are 1 to 65535, the lower one first", "%s is not a range of ports", shown(p))
		}
	}
	switch {
	case f.Enabled == nil && len(f.Services)+len(f.Ports) > 0:
		v.r.Errorf("/firewall/enabled", "missing", "is needed: ports are open or not only where there is a firewall").
			Hint = "add enabled: true"
	case f.Enabled != nil && !*f.Enabled && len(f.Services)+len(f.Ports) > 0:
		v.r.Warnf("/firewall/enabled", "conflict", "is false, so that services and ports have no effect")
	case f.Enabled != nil && *f.Enabled && !slices.Contains(f.Services, "ssh") && !opens(f, 22, "tcp") && len(v.c.SSHD.Ports) == 0:
		v.r.Warnf("/firewall", "no-ssh", "does not open SSH: nobody can log in over the network").Hint = "add ssh to firewall.services"
	}
}
