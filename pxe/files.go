package pxe

import (
	"net/url"
	"slices"
	"strings"

	"slipway.dev/slipway/agent/wire"
	"slipway.dev/slipway/inventory"
)

// FileKind is a kind of file that Slipway makes for one machine, and that it asks for by TFTP.
type FileKind string

// The kinds.
const (
	FileGRUB     FileKind = "grub.cfg"     // GRUB's first configuration
	FileAsk      FileKind = "grub/ask"     // what GRUB is to do, with what it says of itself
	FilePXELinux FileKind = "pxelinux.cfg" // what PXELINUX or U-Boot is to do
	FileArtefact FileKind = "artefact"
	FileArchive  FileKind = "config.cpio"
	FileInitrds  FileKind = "initrds" // every initrd and the configuration as one, for who takes one only
	FileReport   FileKind = "report"
)

// File is a parsed name of a TFTP request.
type File struct {
	Kind    FileKind
	Session inventory.SessionID
	MAC     inventory.MAC // of a pxelinux.cfg, or of a grub.cfg that names it
	Digest  inventory.Digest
	Name    string // of an artefact
	Query   string // what stands after ?
}

// maxFileName bounds a name; RFC 2347 bounds the packet to 512 bytes.
const maxFileName = 480

// ParseFile parses a name as machines request it, without a slash in front. ok is false for a name for which Slipway makes
// no file. GRUB and U-Boot look for files next to their own loader, so that a folder may come before the name. It knows no
// names by address, nor other spellings of a MAC, so that the client tries its next name at once.
func ParseFile(name string) (f File, ok bool) {
	if len(name) > maxFileName || strings.IndexFunc(name, func(r rune) bool { return r < ' ' || r >= 0x7f }) >= 0 {
		return f, false
	}
	path, query, _ := strings.Cut(name, "?")
	parts := strings.Split(path, "/")
	if len(parts) > 5 {
		return f, false
	}
	f.Query = query
	if parts[0] == "boot" && len(parts) > 2 && isSessionID(parts[1]) {
		f.Session = inventory.SessionID(parts[1])
		return f.inSession(parts[2:])
	}
	last := parts[len(parts)-1]
	switch {
	case path == "grub/ask":
		f.Kind = FileAsk
	case last == "grub.cfg" && len(parts) <= 4:
		f.Kind = FileGRUB
	case strings.HasPrefix(last, "grub.cfg-01-") && len(parts) <= 4:
		f.Kind = FileGRUB
		f.MAC, ok = hyphenMAC(strings.TrimPrefix(last, "grub.cfg-01-"))
		return f, ok
	case len(parts) > 1 && len(parts) <= 4 && parts[len(parts)-2] == "pxelinux.cfg" && strings.HasPrefix(last, "01-"):
		f.Kind = FilePXELinux
		f.MAC, ok = hyphenMAC(strings.TrimPrefix(last, "01-"))
		return f, ok
	}
	return f, f.Kind != ""
}

func (f File) inSession(parts []string) (File, bool) {
	switch {
	case len(parts) == 1 && parts[0] == string(FileArchive):
		f.Kind = FileArchive
	case len(parts) == 1 && parts[0] == string(FileInitrds):
		f.Kind = FileInitrds
	case len(parts) == 1 && parts[0] == string(FileReport):
		f.Kind = FileReport
	case len(parts) == 3 && parts[0] == string(FileArtefact):
		d, err := inventory.ParseDigest(parts[1])
		if err != nil || d.Hex() != parts[1] {
			return f, false
		}
		f.Kind, f.Digest, f.Name = FileArtefact, d, parts[2]
	}
	return f, f.Kind != ""
}

// IsProbe reports whether loaders look for a name whether it exists or not. shim looks for its updates, GRUB for its lists
// of modules, and GRUB, PXELINUX and U-Boot for their configuration under many names.
func IsProbe(name string) bool {
	last := name[strings.LastIndexByte(name, '/')+1:]
	return strings.HasPrefix(last, "revocations") && strings.HasSuffix(last, ".efi") || strings.HasPrefix(last, "shim_certificate") ||
		strings.HasSuffix(last, ".lst") || strings.HasSuffix(last, ".mod") || strings.HasPrefix(last, "grub.cfg-") ||
		strings.Contains(name, "pxelinux.cfg/") || strings.HasSuffix(last, ".img") && len(last) == 12
}

// IsBootFile reports whether Slipway makes a file of that name.
func IsBootFile(name string) bool { _, ok := ParseFile(name); return ok }

// TitleOf is the short name of a file for people, and whether it is one of an image.
func TitleOf(name string) (title string, isArtefact bool) {
	f, ok := ParseFile(strings.TrimPrefix(name, "/"))
	if !ok {
		return name, true
	}
	switch f.Kind {
	case FileArtefact:
		return f.Name, true
	case FileArchive, FileInitrds:
		return string(f.Kind), true
	}
	return string(f.Kind), false
}

func hyphenMAC(s string) (inventory.MAC, bool) {
	m, err := inventory.ParseMAC(s)
	return m, err == nil && len(s) == 17
}

func isSessionID(s string) bool { return len(s) == 32 && strings.Trim(s, "0123456789abcdef") == "" }

// The paths by TFTP are those of the URLs, so that one table holds for both doors.
func artefactFile(s inventory.SessionID, f inventory.ImageArtefact) string {
	return ArtefactURL("", s, f)
}

func initrdsFile(s inventory.SessionID) string { return URL("", s, string(FileInitrds)) }

func archiveFile(s inventory.SessionID) string { return URL("", s, ConfigArchive) }

func reportFile(s inventory.SessionID, step ReportStep, detail string) string {
	name := URL("", s, "report") + "?step=" + url.QueryEscape(string(step))
	if detail != "" {
		name += "&detail=" + url.QueryEscape(detail)
	}
	return name[:min(len(name), maxFileName)]
}

// ParseAsk reads what GRUB reports of its machine in its question.
func ParseAsk(query string) (Client, error) {
	c, err := ParseQuery(query)
	if err != nil {
		return c, err
	}
	c.Stage, c.SecureBoot = StageGRUB, SecureBootOff
	q, _ := url.ParseQuery(query)
	if q.Get("lockdown") != "" {
		c.SecureBoot = SecureBootOn
	}
	switch q.Get("cpu") {
	case "x86_64", "arm64", "i386":
		c.Arch = inventory.Arch(q.Get("cpu"))
	}
	if q.Get("platform") == "efi" {
		c.Firmware = inventory.UEFI
	}
	c.Choice = ParseChoice(q.Get("choice"))
	return c, nil
}

// bootWords are what boots an image, as paths below the TFTP door, and its arguments, for loaders that hand the RAM
// disks over by themselves.
func bootWords(in ScriptInput, i *inventory.Image, p *inventory.Profile) (kernel string, initrds, args []string, err error) {
	if i == nil || p == nil {
		return "", nil, nil, inventory.Errorf(inventory.Internal, "script for %s without profile and image", in.Client.MAC)
	}
	if err := i.Validate(); err != nil {
		return "", nil, nil, err
	}
	if args, err = (variables{in: in, image: i}).arguments(p); err != nil {
		return "", nil, nil, err
	}
	for _, f := range i.Files {
		switch f.Role {
		case inventory.RoleKernel:
			kernel = artefactFile(in.Session, f)
		case inventory.RoleInitrd:
			initrds = append(initrds, artefactFile(in.Session, f))
		}
	}
	if c := in.Plan.Config; c != nil && c.HasInitrd {
		initrds = append(initrds, archiveFile(in.Session))
	}
	return kernel, initrds, args, nil
}

// agentProfile gives our agent its arguments. It asks another instance when ours does not answer any more.
func (in ScriptInput) agentProfile() *inventory.Profile {
	args := slices.Clone(in.Plan.Work.Args)
	for _, base := range in.bases() {
		if base != in.Base {
			args = append(args, wire.ArgOther+"="+base)
		}
	}
	return &inventory.Profile{Name: "agent", KernelArgs: args}
}
