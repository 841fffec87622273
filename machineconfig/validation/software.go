package validation

import (
	"crypto/x509"
	"encoding/pem"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/pointer"
)

var (
	packageRE   = regexp.MustCompile(`^[A-Za-z0-9@][A-Za-z0-9+._:~=/*^@-]{0,255}$`)
	repoRE      = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$`)
	suiteRE     = regexp.MustCompile(`^[A-Za-z0-9./][A-Za-z0-9_./:+-]{0,127}$`)
	componentRE = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_./+-]{0,63}$`)
	extensionRE = regexp.MustCompile(`^[a-z0-9][A-Za-z0-9._-]{0,63}$`)
	imageRE     = regexp.MustCompile(`^[a-z0-9][A-Za-z0-9._:/@-]{0,255}$`)
)

// software checks packages, repositories, extensions and certificate authorities.
type software struct{ *checker }

func (v software) check() {
	p := v.c.Packages
	for i, name := range p.Install {
		v.match("/packages/install/"+strconv.Itoa(i), name, packageRE, "the name of a package", "write one package per item")
	}
	for i, name := range p.Hold {
		v.match("/packages/hold/"+strconv.Itoa(i), name, packageRE, "the name of a package", "write one package per item")
	}
	v.packages()
	var ids []string
	for i := range p.Repos {
		r := &p.Repos[i]
		ids = append(ids, r.ID)
		v.repo(pointer.Add("/packages/repos", r.ID), r)
	}
	v.duplicates("/packages/repos", ids)
	ids = nil
	for i := range v.c.Extensions {
		e := &v.c.Extensions[i]
		ids = append(ids, e.Name)
		v.extension(pointer.Add("/extensions", e.Name), e)
	}
	v.duplicates("/extensions", ids)
}

var (
	groupRE   = regexp.MustCompile(`^\^?[A-Za-z0-9][A-Za-z0-9+._:-]{0,127}$`)
	pinRE     = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9+.:~_-]{0,127}\*?$`)
	snapRE    = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,39}$`)
	channelRE = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,60}(/[A-Za-z0-9._-]{1,60}){0,2}$`)
)

// packages checks groups, removals, pins, snaps and the proxy.
func (v software) packages() {
	p := v.c.Packages
	for i, g := range p.Groups {
		v.match("/packages/groups/"+strconv.Itoa(i), g, groupRE, "a group of packages", "write its id, such as core, or ^minimal-environment for an environment")
	}
	for i, name := range p.Remove {
		at := "/packages/remove/" + strconv.Itoa(i)
		v.match(at, name, packageRE, "the name of a package", "write one package per item")
		if slices.Contains(p.Install, name) {
			v.r.Errorf(at, "conflict", "%s is installed and removed", shown(name))
		}
	}
	var names []string
	for _, pin := range p.Pins {
		at := pointer.Add("/packages/pins", pin.Name)
		names = append(names, pin.Name)
		v.match(at, pin.Name, packageRE, "the name of a package", "")
		v.match(pointer.Add(at, "version"), pin.Version, pinRE, "a version", "write it as 1.2.3-4, for apt 1.2.* too")
		if pin.Priority < -32768 || pin.Priority > 32767 {
			v.invalid(pointer.Add(at, "priority"), "1001 downgrades too", "%d is not a priority of apt", pin.Priority)
		}
	}
	v.duplicates("/packages/pins", names)
	names = nil
	for _, s := range p.Snaps {
		at := pointer.Add("/packages/snaps", s.Name)
		names = append(names, s.Name)
		v.match(at, s.Name, snapRE, "the name of a snap", "")
		v.form(pointer.Add(at, "channel"), s.Channel, channelRE, "a channel", "write it as latest/stable")
	}
	v.duplicates("/packages/snaps", names)
	if p.Proxy != "" {
		v.webURL("/packages/proxy", p.Proxy)
	}
}

func (v software) repo(at string, r *machineconfig.Repo) {
	v.match(at, r.ID, repoRE, "the name of a repository", "use letters, digits, -, _ and .")
	v.webURL(pointer.Add(at, "url"), r.URL)
	if r.Suite != "" {
		v.match(pointer.Add(at, "suite"), r.Suite, suiteRE, "a suite", "write it as bookworm, or / for a flat repository")
	}
	if strings.HasSuffix(r.Suite, "/") && len(r.Components) > 0 {
		v.r.Errorf(pointer.Add(at, "components"), "conflict", "a flat repository has no components")
	}
	if len(r.Components) > 0 && r.Suite == "" {
		v.r.Errorf(pointer.Add(at, "suite"), "missing", "is needed for components")
	}
	v.atMost(pointer.Add(at, "components"), len(r.Components), 64)
	for i, c := range r.Components {
		v.match(at+"/components/"+strconv.Itoa(i), c, componentRE, "a component", "write it as main")
	}
	const begin = "-----BEGIN PGP PUBLIC KEY BLOCK-----"
	switch key := strings.TrimSpace(r.Key); {
	case key == "":
	case strings.Contains(key, "PRIVATE KEY"):
		v.invalid(pointer.Add(at, "key"), "give the public key", "is a private key")
	case strings.HasPrefix(key, begin):
		if !strings.HasSuffix(key, "-----END PGP PUBLIC KEY BLOCK-----") {
			v.invalid(pointer.Add(at, "key"), "copy it to its last line", "is not a complete key")
		}
	case v.webURL(pointer.Add(at, "key"), r.Key) == "http":
		v.invalid(pointer.Add(at, "key"), "use https, or put the armoured key here", "is fetched over http: anybody on the way could change it")
	}
}

func (v software) extension(at string, e *machineconfig.Extension) {
	v.match(at, e.Name, extensionRE, "the name of an extension", "use letters, digits, -, _ and .")
	formats := []string{string(machineconfig.Sysext), string(machineconfig.RPMOSTree), string(machineconfig.Bootc)}
	if e.Format != "" && !v.oneOf(pointer.Add(at, "format"), string(e.Format), formats...) {
		return
	}
	switch e.Format {
	case machineconfig.RPMOSTree:
		v.match(pointer.Add(at, "url"), e.URL, packageRE, "the name of a package", "for rpm-ostree, url is the name of the package")
	case machineconfig.Bootc:
		v.match(pointer.Add(at, "url"), e.URL, imageRE, "the reference of a container image", "write it as registry.example.com/os:1.2")
	default:
		v.remote(at, &e.Remote)
	}
}

// trust checks that each CA is one or more certificates, and nothing else.
func (v software) trust() {
	for i, text := range v.c.Trust.CAs {
		at := "/trust/cas/" + strconv.Itoa(i)
		rest := []byte(text)
		n := 0
		for {
			var block *pem.Block
			block, rest = pem.Decode(rest)
			if block == nil {
				break
			}
			n++
			if strings.Contains(block.Type, "PRIVATE KEY") {
				v.invalid(at, "give the certificate only, and do not use this key any more", "holds a private key")
				continue
			}
			cert, err := x509.ParseCertificate(block.Bytes)
			switch {
			case block.Type != "CERTIFICATE" || err != nil:
				v.invalid(at, "write it in PEM: -----BEGIN CERTIFICATE-----", "is not a certificate")
			case !cert.IsCA:
				v.r.Warnf(at, "not-ca", "is not the certificate of an authority: %s", shown(cert.Subject.String()))
			}
		}
		if n == 0 || strings.TrimSpace(string(rest)) != "" {
			v.invalid(at, "write it in PEM: -----BEGIN CERTIFICATE-----", "is not a certificate, or has other text around it")
		}
	}
}
