package images

import (
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
)

var (
	releaseRE = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,62}[A-Za-z0-9])?$`)
	varNameRE = regexp.MustCompile(`^[a-z][a-zA-Z0-9]{0,31}$`)
	// varValueRE keeps a value inside one argument and one URL; a value may be a URL itself.
	varValueRE = regexp.MustCompile(`^[A-Za-z0-9:/._~+%{}-]{1,512}$`)
	pathRE     = regexp.MustCompile(`^[A-Za-z0-9._*{}+-]+(/[A-Za-z0-9._*{}+-]+)*$`)
)

// isMachineVar reports whether every argument may use ${name}.
func isMachineVar(name string) bool { return slices.Contains(pxe.VariableNames(), "${"+name+"}") }

// check refuses an entry that could not be imported or booted.
func (e *Entry) check() error {
	bad := func(format string, args ...any) *inventory.Error {
		err := inventory.Errorf(inventory.Invalid, format, args...)
		err.Msg = e.Origin + ": " + err.Msg
		return err
	}
	if inventory.CheckName("operating system", e.OS) != nil {
		return bad("%q is not a name for an operating system", e.OS).WithHint("write os: in small letters, digits and -")
	}
	if len(e.Releases) == 0 || e.Title == "" || len(e.Arch) == 0 {
		return bad("%s lacks releases, title or arch", e.OS).WithHint("all three are needed")
	}
	for _, r := range e.Releases {
		if r != "*" && !releaseRE.MatchString(r) {
			return bad("%s: %q is not a release", e.OS, r).WithHint(`write "12", or "*" for every release`)
		}
	}
	for ours, theirs := range e.Arch {
		if !slices.Contains([]inventory.Arch{inventory.X8664, inventory.I386, inventory.ARM64}, ours) || !releaseRE.MatchString(theirs) {
			return bad("%s: arch %s: %s is not known", e.OS, ours, theirs).WithHint("ours are x86_64, i386 and arm64")
		}
	}
	if e.MemoryMiB < 0 || e.MemoryMiB > 1<<20 {
		return bad("%s: memoryMiB is %d", e.OS, e.MemoryMiB)
	}
	if e.CPULevel != "" && !slices.Contains(inventory.CPULevels(), e.CPULevel) {
		return bad("%s: cpuLevel %q is not known", e.OS, e.CPULevel).WithHint("use %s", strings.Join(inventory.CPULevels(), ", "))
	}
	if err := e.checkVars(bad); err != nil {
		return err
	}
	if err := e.checkConfigs(bad); err != nil {
		return err
	}
	if err := e.Chain.check(e.OS, bad); err != nil {
		return err
	}
	return e.checkExample(bad)
}

type complaint func(format string, args ...any) *inventory.Error

func (e *Entry) checkVars(bad complaint) error {
	for name, value := range e.Vars {
		if !varNameRE.MatchString(name) || slices.Contains([]string{"release", "line", "arch"}, name) {
			return bad("%s: %q cannot be a var", e.OS, name).WithHint("use letters and digits; release, line and arch exist already")
		}
		// ".." is refused everywhere in the catalogue: a value becomes a part of URLs, and of paths on the server.
		if !varValueRE.MatchString(value) || strings.Contains(value, "..") {
			return bad("%s: var %s has a value that fits no URL", e.OS, name)
		}
	}
	for _, p := range e.Parameters {
		if !varNameRE.MatchString(p.Name) || p.About == "" || isMachineVar(p.Name) || p.Name == "config" {
			return bad("%s: parameter %q needs a name of its own and an about", e.OS, p.Name)
		}
	}
	return nil
}

// imageConfigs are the entry's formats of configuration as an image has them.
func (e *Entry) imageConfigs() (all []inventory.ImageConfig) {
	for _, c := range e.Configs {
		all = append(all, inventory.ImageConfig{Format: c.Format, Version: c.Version, InitrdPath: c.InitrdPath})
	}
	return all
}

func (e *Entry) checkConfigs(bad complaint) error {
	for _, c := range e.Configs {
		if !slices.Contains(inventory.ConfigFormats(), c.Format) {
			return bad("%s: %q is not a config format", e.OS, c.Format).WithHint("use %s", strings.Join(inventory.ConfigFormats(), ", "))
		}
		if c.Version == "" { // the renderer writes for a version, and would have to guess
			return bad("%s: config format %s has no version", e.OS, c.Format).
				WithHint("give the Ignition spec, the cloud-init version, or the release of the tool that reads it")
		}
		if c.InitrdPath != "" && (!path.IsAbs(c.InitrdPath) || path.Clean(c.InitrdPath) != c.InitrdPath) {
			return bad("%s: initrdPath %q is not an absolute path", e.OS, c.InitrdPath)
		}
	}
	if len(e.Configs) == 0 && len(e.ConfigArgs) > 0 {
		return bad("%s has configArgs but no configs", e.OS)
	}
	return nil
}

// checkExample fills the entry's templates for each architecture and checks what comes out.
func (e *Entry) checkExample(bad complaint) error {
	for _, f := range e.Files {
		if len(f.Paths) == 0 {
			return bad("%s: file %s has no paths", e.OS, f.Name)
		}
		for _, p := range f.Paths {
			if !pathRE.MatchString(p) || strings.Contains(p, "..") {
				return bad("%s: file %s: %q is not a path below base", e.OS, f.Name, p)
			}
		}
	}
	release := e.Releases[0]
	if release == "*" {
		release = "1"
	}
	for arch := range e.Arch {
		vars, err := e.vars(release, e.Releases[0], arch, nil)
		if err != nil {
			return bad("%v", err)
		}
		// A mistake in a template shows when the catalogue is read, and not months later at the first import of that
		// architecture.
		x, err := e.expanded(vars)
		if err != nil {
			return bad("%s: %v", e.OS, err).WithHint("known are release, line, arch and what vars: defines")
		}
		if x.base != "" {
			if u, err := url.Parse(x.base); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
				return bad("%s: base %q is not an http address", e.OS, x.base)
			}
		}
		if x.folder != "" && !path.IsAbs(x.folder) {
			return bad("%s: folder %q is not absolute", e.OS, x.folder)
		}
		if err := e.checkImage(arch, x, bad); err != nil {
			return err
		}
	}
	return nil
}

// checkImage checks the image that an import would make. An entry without files is one whose files the import names.
func (e *Entry) checkImage(arch inventory.Arch, x expansion, bad complaint) error {
	img := inventory.Image{Name: e.OS, OS: e.OS, Arch: arch, KernelArgs: x.kernelArgs, ConfigArgs: x.configArgs}
	names := map[string]bool{}
	for _, f := range e.Files {
		names[f.Name] = true
		img.Files = append(img.Files, inventory.ImageArtefact{
			Role: f.Role, Name: f.Name,
			Digest: inventory.Digest("sha256:" + strings.Repeat("0", 64)),
		})
	}
	if len(e.Files) > 0 {
		if err := img.Validate(); err != nil {
			return bad("%v", err).WithHint("%s", inventory.HintOf(err))
		}
	}
	for i, args := range [][]string{x.kernelArgs, x.configArgs} {
		for _, arg := range args {
			for _, name := range machineVars(arg) {
				if !e.knowsMachineVar(name, names, i == 1) {
					return bad("%s: argument %q uses ${%s}, which nothing fills in", e.OS, arg, name).
						WithHint("known are %s, ${file:NAME} of its files, its parameters, and ${config} in configArgs", strings.Join(pxe.VariableNames(), ", "))
				}
			}
			// Loaders and kernels quote differently. An argument without blanks and quotes means the same to all of them.
			if arg == "" || strings.ContainsAny(arg, " \t\r\n\"'\\") {
				return bad("%s: argument %q is not one word", e.OS, arg)
			}
		}
	}
	if err := pxe.CheckArgs(&img, profileFor(append(slices.Clone(img.KernelArgs), img.ConfigArgs...))); err != nil {
		return bad("%v", err).WithHint("%s", inventory.HintOf(err))
	}
	return nil
}

func (e *Entry) knowsMachineVar(name string, files map[string]bool, isConfigArg bool) bool {
	if file, ok := strings.CutPrefix(name, "file:"); ok {
		return files[file]
	}
	return isMachineVar(name) || name == "config" && isConfigArg ||
		slices.ContainsFunc(e.Parameters, func(p Parameter) bool { return p.Name == name })
}

// expansion is an entry with its {names} filled in.
type expansion struct {
	base, sums, pkg, folder string
	paths                   map[string][]string // by file name
	kernelArgs, configArgs  []string
}

// vars returns the values of the entry's {names} for one release and architecture.
func (e *Entry) vars(release, line string, arch inventory.Arch, set map[string]string) (map[string]string, error) {
	// Publishers name architectures differently: x86_64 is amd64 for Debian. theirs goes into addresses, ours into the image.
	theirs, ok := e.Arch[arch]
	if !ok {
		return nil, inventory.Errorf(inventory.Invalid, "%s does not exist for %q in the catalogue", e.Title, arch)
	}
	if !releaseRE.MatchString(release) || strings.Contains(release, "..") {
		return nil, inventory.Errorf(inventory.Invalid, "%q is not a release", release).WithHint("such as %s", e.Releases[0])
	}
	if line == "*" {
		line = release
	}
	vars := map[string]string{"release": release, "line": line, "arch": theirs}
	for name, value := range set {
		if _, ok := e.Vars[name]; !ok {
			return nil, inventory.Errorf(inventory.Invalid, "%s has no var %q to set", e.Title, name)
		}
		if !varValueRE.MatchString(value) || strings.ContainsAny(value, "{}") || strings.Contains(value, "..") {
			return nil, inventory.Errorf(inventory.Invalid, "%q cannot be the value of %s", value, name).
				WithHint("use letters, digits and : / . _ ~ + %% -")
		}
	}
	// A var may use release, line and arch, and no other var. own is merged at the end, so that the order of a map
	// does not matter.
	own := map[string]string{}
	for name, value := range e.Vars {
		if v, ok := set[name]; ok {
			value = v
		}
		v, err := expand(value, vars)
		if err != nil {
			return nil, inventory.Errorf(inventory.Invalid, "%s: var %s: %v", e.OS, name, err)
		}
		own[name] = v
	}
	for name, value := range own {
		vars[name] = value
	}
	return vars, nil
}

// expanded fills every template of the entry.
func (e *Entry) expanded(vars map[string]string) (expansion, error) {
	x := expansion{paths: map[string][]string{}}
	var firstErr error
	fill := func(text string) string {
		s, err := expand(text, vars)
		if err != nil && firstErr == nil {
			firstErr = err
		}
		return s
	}
	x.base, x.sums = strings.TrimSuffix(fill(e.Base), "/"), fill(e.Sums)
	x.pkg, x.folder = fill(e.Package), fill(e.Folder)
	for _, f := range e.Files {
		for _, p := range f.Paths {
			x.paths[f.Name] = append(x.paths[f.Name], fill(p))
		}
	}
	for _, a := range e.KernelArgs {
		x.kernelArgs = append(x.kernelArgs, fill(a))
	}
	for _, a := range e.ConfigArgs {
		x.configArgs = append(x.configArgs, fill(a))
	}
	return x, firstErr
}

var (
	importVarRE  = regexp.MustCompile(`\$?\{[^{}]*\}`)
	machineVarRE = regexp.MustCompile(`\$\{([^{}]*)\}`)
)

// expand fills in {names} and leaves ${names} alone.
func expand(text string, vars map[string]string) (string, error) {
	var err error
	out := importVarRE.ReplaceAllStringFunc(text, func(m string) string {
		if m[0] == '$' { // ${name} is filled in for each machine at its boot
			return m
		}
		v, ok := vars[m[1:len(m)-1]]
		if !ok && err == nil {
			err = inventory.Errorf(inventory.Invalid, "%q uses %s, which nothing fills in", text, m)
		}
		return v
	})
	return out, err
}

// machineVars returns the names in the ${names} of an argument.
func machineVars(arg string) []string {
	var names []string
	for _, m := range machineVarRE.FindAllStringSubmatch(arg, -1) {
		names = append(names, m[1])
	}
	return names
}
