package images

import (
	"cmp"
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ProtonMail/go-crypto/openpgp"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
)

// FromPackage as ImportRequest.From takes the files of the Debian package that the catalogue entry names.
const FromPackage = "package"

// ImportRequest says what to import and under which name. Catalogue.Check checks every field before anything is fetched.
type ImportRequest struct {
	Name    string         `json:"name"`              // of the image
	OS      string         `json:"os,omitempty"`      // a catalogue entry; "" means custom
	Release string         `json:"release,omitempty"` // of the OS
	Arch    inventory.Arch `json:"arch,omitempty"`    // "" means x86_64
	// From is where Slipway looks for the catalogue's files: an http(s) address in place of the entry's base, a folder,
	// or "package"; "" is the entry's own base.
	From string `json:"from,omitempty"`
	// Sums is the URL or path of a list of SHA-256 or SHA-512 sums, in place of the entry's own. Each file must be in it.
	Sums string `json:"sums,omitempty"`
	// SignatureKey is the publisher's OpenPGP public key, armoured. The checksum list must be signed by it, or without a list the
	// image's only file. Each file must then be in the list. Signature is the URL or path of the signature; "" looks into the list,
	// which may carry it, and next to it for .gpg, .sign, .asc and .sig.
	SignatureKey string `json:"signatureKey,omitempty"`
	Signature    string `json:"signature,omitempty"`
	// Files adds to the entry's files, or replaces those with the same name.
	Files []ImportFile `json:"files,omitempty"`
	// KernelArgs come after the entry's own.
	KernelArgs []string `json:"kernelArgs,omitempty"`
	// Configs are the formats of configuration that the image reads, and ConfigArgs the kernel arguments for a
	// configuration. Both replace those of the entry.
	Configs    []inventory.ImageConfig `json:"configs,omitempty"`
	ConfigArgs []string                `json:"configArgs,omitempty"`
	// Set overrides the entry's vars.
	Set map[string]string `json:"set,omitempty"`
	// MemoryMiB and IsInstaller override the entry's when given.
	MemoryMiB   int   `json:"memoryMiB,omitempty"`
	IsInstaller *bool `json:"isInstaller,omitempty"`
	// CPULevel overrides the entry's: it is for builds of a system that need less.
	CPULevel string `json:"cpuLevel,omitempty"`
	// DiskFormat is how a file of role disk, or what Remote names, is packed; "" guesses it from the name. DiskBytes is how
	// large it is unpacked, 0 when not known. Remote is a disk image that agents fetch themselves: oci://...@sha256:<hex>.
	DiskFormat string `json:"diskFormat,omitempty"`
	DiskBytes  int64  `json:"diskBytes,omitempty"`
	Remote     string `json:"remote,omitempty"`
	SeedLabel  string `json:"seedLabel,omitempty"` // see inventory.Image
	// AllowLocal lets the request name files of this machine. It is for callers on the unix socket, who can read files
	// anyway. A request cannot ask for it: else any operator could publish a private key of the server as a "kernel".
	AllowLocal bool `json:"-"`
	// IsAdmin lets the caller see why a server could not be reached. Others see only that it failed.
	IsAdmin bool `json:"-"`
}

// ImportFile is a file named by the request itself.
type ImportFile struct {
	Role inventory.Role `json:"role"`
	// Name "" takes the name of the entry's only file of that role, or else the last part of the source.
	Name   string           `json:"name,omitempty"`
	Source string           `json:"source"` // http(s) URL, an absolute path, or the sha256:<hex> of an artefact that is here
	SHA256 inventory.Digest `json:"sha256,omitempty"`
}

// plan is a request worked out: what to fetch from where, and the image it will make.
type plan struct {
	image inventory.Image // Files have no digest yet
	files []planned
	sums  string // URL or path of the checksum list, "" for none
	// isSumsOptional: a folder need not hold the list that its publisher has.
	isSumsOptional bool
	// isSumsAsked: the request names the list, so that every file must be in it, whatever else is known of the file.
	isSumsAsked bool
	// key has signed the list, or the only file; nil asks for no signature. signature says where that is, "" next to the signed file.
	key       openpgp.EntityList
	signature string
	hint      string // what to do when a file is missing
	chain     *Chain // of the catalogue's entry
	// isFormatGuessed: the content of the disk image says how it is packed.
	isFormatGuessed bool
}

// planned is one file of a plan.
type planned struct {
	role    inventory.Role
	name    string
	sources []source // tried in order
	want    inventory.Digest
	sha512  string // hex, when a list has it
	listed  listed
}

// listed says what the checksum list means to a file.
type listed int

const (
	mustBeListed  listed = iota
	mayBeUnlisted        // taken unchecked when the list does not have it
	isNoneOfList         // the list is about other files
)

// source is one place where a file may be: at is a URL or an absolute path, and may hold * in its last parts; path is
// what the checksum list calls it.
type source struct {
	at, path string
	isPath   bool
	isHere   bool // at is the digest of an artefact
}

// Check refuses a request that cannot succeed, whatever the network and the disk hold. It touches neither of them.
func (c *Catalogue) Check(r ImportRequest) error {
	_, err := c.plan(r)
	return err
}

// plan works a request out without touching network or disk.
// Everything wrong with a request shows here, in milliseconds and before a download of gigabytes.
func (c *Catalogue) plan(r ImportRequest) (plan, error) {
	r.OS = cmp.Or(r.OS, "custom")
	r.Arch = cmp.Or(r.Arch, inventory.X8664)
	if r.Release == "" && r.OS == "custom" {
		r.Release = "1"
	}
	if err := inventory.CheckName("image", r.Name); err != nil {
		return plan{}, err
	}
	e, line, err := c.Find(r.OS, r.Release)
	if err != nil {
		return plan{}, err
	}
	vars, err := e.vars(r.Release, line, r.Arch, r.Set)
	if err != nil {
		return plan{}, err
	}
	x, err := e.expanded(vars)
	if err != nil {
		return plan{}, err
	}
	p := plan{image: inventory.Image{
		Name: r.Name, OS: r.OS, Release: r.Release, Arch: r.Arch,
		KernelArgs: append(slices.Clone(x.kernelArgs), r.KernelArgs...), MemoryMiB: e.MemoryMiB, IsInstaller: e.IsInstaller,
		Configs: e.imageConfigs(), ConfigArgs: x.configArgs,
	}, chain: e.Chain}
	if err := r.checkConfigs(); err != nil {
		return plan{}, err
	}
	if len(r.Configs) > 0 {
		p.image.Configs, p.image.ConfigArgs = r.Configs, r.ConfigArgs
	}
	if r.MemoryMiB > 0 {
		p.image.MemoryMiB = r.MemoryMiB
	}
	if r.Arch == inventory.X8664 {
		p.image.CPULevel = cmp.Or(r.CPULevel, e.CPULevel)
	}
	if r.IsInstaller != nil {
		p.image.IsInstaller = *r.IsInstaller
	}
	if r.isDisk() {
		p.beDisk(r)
		if err := p.chooseSums(r, expansion{}); err != nil {
			return plan{}, err
		}
	} else {
		r.Files = named(r.Files, e.Files)
		if err := p.addCatalogueFiles(r, &e, x); err != nil {
			return plan{}, err
		}
	}
	if err := p.addOwnFiles(r); err != nil {
		return plan{}, err
	}
	if err := p.askSignature(r); err != nil {
		return plan{}, err
	}
	return p, p.check()
}

// mustList reports whether the request wants each file to be in a checksum list.
func (r *ImportRequest) mustList() bool { return r.Sums != "" || r.SignatureKey != "" }

// askSignature reads the key that the list, or the image's only file, must be signed with.
func (p *plan) askSignature(r ImportRequest) (err error) {
	switch {
	case r.SignatureKey == "" && r.Signature == "":
		return nil
	case r.SignatureKey == "":
		return inventory.Errorf(inventory.Invalid, "there is a signature, and no key to check it with").WithHint("give the publisher's public key with --signature-key FILE")
	case r.Remote != "":
		return inventory.Errorf(inventory.Invalid, "a signature says nothing of %s, which agents fetch themselves", inventory.Clean(r.Remote, 120)).
			WithHint("leave --signature-key out: agents compare it with the digest in its address")
	case p.sums == "" && len(p.files) != 1:
		return inventory.Errorf(inventory.Invalid, "the image has %d files, and no checksum list that could be signed", len(p.files)).WithHint("name the list with --sums WHERE")
	}
	if r.Signature != "" {
		if _, err := checkSource(r.Signature, r.AllowLocal); err != nil {
			return err
		}
	}
	// With a key, a list that is missing or does not name a file is an error. Else an attacker on the way would only
	// have to answer 404 for the list.
	p.isSumsAsked, p.isSumsOptional, p.signature = p.sums != "", false, r.Signature
	p.key, err = keysOf(r.SignatureKey)
	return err
}

// isDisk reports whether a disk image is imported.
func (r *ImportRequest) isDisk() bool {
	return r.Remote != "" || slices.ContainsFunc(r.Files, func(f ImportFile) bool { return f.Role == inventory.RoleDisk })
}

// beDisk makes the image one that is written to a disk: nothing of what its catalogue entry says about booting from the
// network holds for it, but the formats of configuration that are placed on a disk.
func (p *plan) beDisk(r ImportRequest) {
	i := &p.image
	p.chain = nil
	i.KernelArgs, i.ConfigArgs, i.IsInstaller = r.KernelArgs, r.ConfigArgs, false
	i.Remote, i.DiskBytes, i.DiskFormat, i.SeedLabel = r.Remote, r.DiskBytes, r.DiskFormat, r.SeedLabel
	if r.MemoryMiB == 0 {
		i.MemoryMiB = 0 // that of the netboot image holds all of it in memory
	}
	i.Configs = slices.DeleteFunc(slices.Clone(i.Configs), func(c inventory.ImageConfig) bool { return !slices.Contains(diskFormats, c.Format) })
	for n := range i.Configs {
		i.Configs[n].InitrdPath = ""
	}
	p.isFormatGuessed = r.DiskFormat == "" && r.Remote == ""
	for n, f := range r.Files {
		name := baseName(f)
		if isDigest(f.Source) && f.Name != "" {
			name = f.Name
		}
		if f.Name == "" {
			r.Files[n].Name = name
		}
		if i.DiskFormat == "" && f.Role == inventory.RoleDisk {
			i.DiskFormat = diskFormatOf(name)
		}
	}
	i.DiskFormat = cmp.Or(i.DiskFormat, "raw")
}

// diskFormatOf guesses how a disk image is packed from the name of its file.
func diskFormatOf(name string) string {
	for end, format := range map[string]string{".gz": "raw.gz", ".zst": "raw.zst", ".xz": "raw.xz", ".qcow2": "qcow2"} {
		if strings.HasSuffix(strings.ToLower(name), end) {
			return format
		}
	}
	return "raw"
}

// addCatalogueFiles plans the files that the entry names and the request does not.
func (p *plan) addCatalogueFiles(r ImportRequest, e *Entry, x expansion) error {
	if err := p.chooseSums(r, x); err != nil {
		return err
	}
	from, isPath, err := chooseFrom(r, e, x)
	if err != nil {
		return err
	}
	p.hint = e.Notes
	if r.From == FromPackage {
		p.hint = "install it on the server with: apt install " + x.pkg
	}
	for _, f := range e.Files {
		if slices.ContainsFunc(r.Files, func(o ImportFile) bool { return o.Name == f.Name }) {
			continue
		}
		if from == "" {
			err := inventory.Errorf(inventory.Invalid, "%s is published in no form that can be fetched file by file", e.Title)
			return err.WithHint("%s", e.Notes)
		}
		n := planned{role: f.Role, name: f.Name}
		if !r.mustList() && (f.IsUnlisted || isPath) {
			n.listed = mayBeUnlisted
		}
		for _, rel := range x.paths[f.Name] {
			if !isPath {
				n.sources = append(n.sources, source{at: from + "/" + rel, path: rel})
				continue
			}
			n.sources = append(n.sources, source{at: filepath.Join(from, rel), path: rel, isPath: true})
			if base := path.Base(rel); base != rel {
				n.sources = append(n.sources, source{at: filepath.Join(from, base), path: rel, isPath: true})
			}
		}
		if isPath {
			n.sources = append(n.sources, source{at: filepath.Join(from, f.Name), path: f.Name, isPath: true})
		}
		p.files = append(p.files, n)
	}
	return nil
}

// chooseSums picks the checksum list.
func (p *plan) chooseSums(r ImportRequest, x expansion) error {
	if r.Sums != "" && r.Remote != "" {
		return inventory.Errorf(inventory.Invalid, "a checksum list says nothing of %s, which agents fetch themselves", inventory.Clean(r.Remote, 120)).
			WithHint("leave --sums out: agents compare it with the digest in its address")
	}
	if r.Sums != "" {
		p.sums, p.isSumsAsked = r.Sums, true
		_, err := checkSource(r.Sums, r.AllowLocal)
		return err
	}
	if x.sums == "" {
		return nil
	}
	if isURL(x.sums) {
		p.sums = x.sums
		return nil
	}
	switch {
	case r.From == "" && x.base != "":
		p.sums = x.base + "/" + x.sums
	case isURL(r.From):
		p.sums = strings.TrimSuffix(r.From, "/") + "/" + x.sums
	case filepath.IsAbs(r.From):
		p.sums, p.isSumsOptional = filepath.Join(r.From, path.Base(x.sums)), true
	}
	return nil
}

// chooseFrom picks the address or folder below which Slipway looks for the entry's files.
func chooseFrom(r ImportRequest, e *Entry, x expansion) (from string, isPath bool, err error) {
	switch r.From {
	case "":
		return x.base, false, nil
	case FromPackage:
		// This path comes from the catalogue, not from the request.
		if x.folder == "" {
			return "", false, inventory.Errorf(inventory.Invalid, "no Debian package brings %s", e.Title)
		}
		return x.folder, true, nil
	}
	isPath, err = checkSource(r.From, r.AllowLocal)
	return strings.TrimSuffix(r.From, "/"), isPath, err
}

// addOwnFiles plans the files that the request names itself.
func (p *plan) addOwnFiles(r ImportRequest) error {
	for _, f := range r.Files {
		if isDigest(f.Source) {
			if d, err := inventory.ParseDigest(string(f.SHA256)); f.SHA256 != "" && (err != nil || string(d) != f.Source) {
				return inventory.Errorf(inventory.Invalid, "%s is not what was to come: its sum is %s", inventory.Clean(f.Name, 80), f.Source).
					WithHint("it should be %s; choose the right file", inventory.Clean(string(f.SHA256), 80))
			}
			n := planned{role: f.Role, name: f.Name, want: inventory.Digest(f.Source), sources: []source{{at: f.Source, path: f.Name, isHere: true}}}
			if !r.mustList() {
				n.listed = isNoneOfList
			}
			p.files = append(p.files, n)
			continue
		}
		isPath, err := checkSource(f.Source, r.AllowLocal)
		if err != nil {
			return err
		}
		n := planned{role: f.Role, name: f.Name, sources: []source{{at: f.Source, path: sourcePath(f.Source), isPath: isPath}}}
		if !r.mustList() {
			n.listed = isNoneOfList
		}
		if f.SHA256 != "" {
			if n.want, err = inventory.ParseDigest(string(f.SHA256)); err != nil {
				return err
			}
		}
		p.files = append(p.files, n)
	}
	return nil
}

// check refuses an image that the store would refuse, before anything is fetched.
func (p *plan) check() error {
	// A boot loader is given the kernel first; sorting also makes the same request the same image.
	order := []inventory.Role{inventory.RoleKernel, inventory.RoleInitrd, inventory.RoleRootfs, inventory.RoleISO, inventory.RoleDisk}
	slices.SortStableFunc(p.files, func(a, b planned) int { return slices.Index(order, a.role) - slices.Index(order, b.role) })
	trial := p.image
	for _, f := range p.files {
		trial.Files = append(trial.Files, inventory.ImageArtefact{
			Role: f.role, Name: f.name,
			Digest: inventory.Digest("sha256:" + strings.Repeat("0", 64)),
		})
	}
	if len(p.files) == 0 && p.image.Remote == "" {
		return inventory.Errorf(inventory.Invalid, "no files are named for image %s", p.image.Name).
			WithHint("name at least a kernel: --kernel URL-or-path, and usually --initrd")
	}
	if err := trial.Validate(); err != nil {
		return err
	}
	return pxe.CheckArgs(&trial, profileFor(append(slices.Clone(trial.KernelArgs), trial.ConfigArgs...)))
}

// profileFor returns a profile that gives some value to each ${name} that only a profile can give.
func profileFor(args []string) *inventory.Profile {
	p := &inventory.Profile{Name: "any", Parameters: map[string]string{}}
	for _, a := range args {
		for _, name := range machineVars(a) {
			if !isMachineVar(name) && !strings.HasPrefix(name, "file:") && name != "config" {
				p.Parameters[name] = "x"
			}
		}
	}
	return p
}

// named gives each file of a request its name.
func named(own []ImportFile, entry []File) []ImportFile {
	own = slices.Clone(own)
	for i, f := range own {
		if f.Name != "" {
			continue
		}
		own[i].Name = baseName(f)
		ofRole := slices.DeleteFunc(slices.Clone(entry), func(e File) bool { return e.Role != f.Role })
		isOnly := !slices.ContainsFunc(own, func(o ImportFile) bool { return o.Role == f.Role && o != f && o != own[i] })
		if len(ofRole) == 1 && isOnly {
			own[i].Name = ofRole[0].Name
		}
	}
	return own
}

// sourcePath returns the path part of a URL or path.
func sourcePath(s string) string {
	if u, err := url.Parse(s); err == nil && isURL(s) {
		return strings.TrimPrefix(u.Path, "/")
	}
	return strings.TrimPrefix(filepath.ToSlash(s), "/")
}

// baseName is what a file is called by its source.
func baseName(f ImportFile) string {
	if isDigest(f.Source) {
		return string(f.Role) + "-" + inventory.Digest(f.Source).Hex()[:12]
	}
	return fileName(path.Base(sourcePath(f.Source)))
}

// fileName makes a name that an image may give a file: without spaces, and what else a boot script could not hold.
func fileName(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < 0x80 && (r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' || strings.ContainsRune("._+-", r)) {
			return r
		}
		return '-'
	}, s)
	s = strings.TrimLeft(s, "._+-")
	return s[max(0, len(s)-128):]
}

// isDigest reports whether a source is an artefact that is here already.
func isDigest(s string) bool {
	d, err := inventory.ParseDigest(s)
	return err == nil && string(d) == s
}

func isURL(s string) bool {
	l := strings.ToLower(s)
	return strings.HasPrefix(l, "http://") || strings.HasPrefix(l, "https://")
}

// checkSource accepts an http(s) URL, or the absolute path of a file here if that is allowed.
func checkSource(s string, allowLocal bool) (isPath bool, err error) {
	if isURL(s) {
		u, err := url.Parse(s)
		if err != nil || u.Host == "" || u.Fragment != "" {
			return false, inventory.Errorf(inventory.Invalid, "%q is not a web address", inventory.Clean(s, 200))
		}
		return false, nil
	}
	if i := strings.Index(s, "://"); i > 0 {
		return false, inventory.Errorf(inventory.Invalid, "%s addresses cannot be imported", inventory.Clean(s[:i], 20)).
			WithHint("use http or https, or the path of a file on the machine that runs the server")
	}
	if !allowLocal {
		return false, inventory.Errorf(inventory.Forbidden, "files of the server can only be imported on the server itself").
			WithHint("run slipway image import there, or give an http address")
	}
	if !filepath.IsAbs(s) {
		return false, inventory.Errorf(inventory.Invalid, "%q is not an absolute path", inventory.Clean(s, 200)).
			WithHint("begin it with /")
	}
	return true, nil
}
