// Package images owns the commands for what machines boot: slipway image, artefact and agent-image. It decides nothing: it calls the
// REST API.
package images

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"slipway.dev/slipway/cmd/slipway/cli"
	"slipway.dev/slipway/cmd/slipway/cli/nouns"
	"slipway.dev/slipway/images"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/client"
)

// ImageCommand is slipway image.
type ImageCommand struct {
	List      nouns.List[image, inventory.Image]   `cmd:"" help:"List images."`
	Show      nouns.Show[image, inventory.Image]   `cmd:"" help:"Show an image."`
	Import    imageImport                          `cmd:"" help:"Import an image from the catalogue, from URLs or from files."`
	Imports   imageImports                         `cmd:"" help:"List imports and how far they are."`
	Retry     imageRetry                           `cmd:"" help:"Start an import that failed once more."`
	Cancel    imageCancel                          `cmd:"" help:"Stop an import; the next one of the same goes on from there."`
	Delete    nouns.Delete[image, inventory.Image] `cmd:"" help:"Delete images; artefact prune then frees the space."`
	Catalogue imageCatalogue                       `cmd:"" help:"List what can be imported by name."`
	Verify    artefactVerify                       `cmd:"" help:"Read the files of all images again and list those that are damaged."`
	Prune     artefactPrune                        `cmd:"" help:"Remove the files that no image uses."`
}

// image is how people read an image.
type image struct{ nouns.Plain[inventory.Image] }

// Fields implements nouns.Noun.
func (image) Fields(f *nouns.Fields, i inventory.Image) {
	f.Both("name", i.Name)
	f.Listed("os", i.OS)
	f.Shown("os", i.OS+" "+i.Release)
	f.Listed("release", i.Release)
	f.Both("arch", string(i.Arch))
	f.Listed("files", fmt.Sprint(len(i.Files)))
	f.Both("installs", cli.YesNo(i.IsInstaller))
	if i.MemoryMiB > 0 {
		f.Shown("memory", fmt.Sprintf("at least %d MiB", i.MemoryMiB))
	}
	f.Shown("processor", i.CPULevel)
	for _, file := range i.Files {
		f.Shown(string(file.Role), file.Name+" "+string(file.Digest))
	}
	if i.DiskFormat != "" {
		size := "of unknown size"
		if i.DiskBytes > 0 {
			size = images.FormatBytes(i.DiskBytes)
		}
		f.Shown("written to disk", strings.TrimSpace(i.DiskFormat+", "+size+" "+i.Remote))
		f.Shown("seed label", i.SeedLabel)
	}
	f.Shown("arguments", strings.Join(i.KernelArgs, " "))
	for _, c := range i.Configs {
		f.Shown("reads", strings.TrimSpace(c.Format+" "+c.Version+" "+c.InitrdPath))
	}
	f.Both("imported", cli.TimeText(i.UpdatedAt))
}

type imageImport struct {
	Name    string `arg:"" help:"Name of the image, such as debian-12."`
	OS      string `name:"os" help:"Operating system of the catalogue; without it, --kernel names your own." placeholder:"OS"`
	Release string `help:"Release of the operating system." placeholder:"RELEASE"`
	Arch    string `help:"x86_64 or arm64 (default x86_64)." placeholder:"ARCH"`
	From    string `help:"Where the files are: a URL, a folder of the server, or 'package' for its Debian package." placeholder:"WHERE"`
	Sums    string `help:"URL or file with SHA-256 or SHA-512 sums; every file must be in it." placeholder:"WHERE"`
	// Signature needs SignatureKey.
	SignatureKey string            `help:"File with the publisher's OpenPGP public key, armoured or binary: it must have signed the list of sums, or without a list the only file." placeholder:"FILE"`
	Signature    string            `help:"URL or file with the signature (default: in the list, or its name with .gpg, .sign, .asc or .sig)." placeholder:"WHERE"`
	SHA256       []string          `name:"sha256" help:"SHA-256 sum of a file that is named here: HEX, or FILE=HEX when there are several; repeat for more." placeholder:"[FILE=]HEX" sep:"none"`
	Kernel       string            `help:"URL or file of the kernel." placeholder:"WHERE"`
	Initrd       []string          `help:"URL or file of an initrd; repeat for more." placeholder:"WHERE"`
	Rootfs       []string          `help:"URL or file that the system fetches itself." placeholder:"WHERE"`
	Disk         string            `help:"URL or file of a disk image, which our agent writes to a host's disk: raw, raw.gz, raw.zst, raw.xz or qcow2." placeholder:"WHERE"`
	DiskFormat   string            `help:"How the disk image is packed; its content tells without this." placeholder:"FORMAT"`
	DiskBytes    string            `help:"How large it is unpacked, such as 10Gi; needed only where its file does not tell." placeholder:"SIZE"`
	Remote       string            `help:"Disk image that agents fetch themselves: oci://REGISTRY/REPOSITORY@sha256:HEX." placeholder:"WHERE"`
	SeedLabel    string            `help:"Label of the file system on the disk image that gets the configuration; the agent finds it without this." placeholder:"LABEL"`
	ISO          []string          `name:"iso" help:"URL or file of an ISO that the system fetches itself." placeholder:"WHERE"`
	Arg          []string          `help:"Kernel argument; repeat for more." placeholder:"ARG" sep:"none"`
	Config       []string          `help:"Format of configuration that your own image reads, and by which version: ignition=3.4.0, or ignition=3.4.0:/config.ign with its path in the initrd; repeat for more." placeholder:"FORMAT=VERSION" sep:"none"`
	ConfigArg    []string          `help:"Kernel argument for a configuration, such as ignition.config.url=$${config}; repeat for more." placeholder:"ARG" sep:"none"`
	Set          map[string]string `help:"Value of a catalogue variable, NAME=VALUE." placeholder:"NAME=VALUE" mapsep:"none"`
	MemoryMiB    int               `name:"memory-mib" help:"Least memory in MiB." placeholder:"N"`
	CPULevel     string            `name:"cpu-level" help:"Least level of an x86-64 processor, such as x86-64-v3." placeholder:"LEVEL"`
	Installer    *bool             `negatable:"" help:"Whether booting it may overwrite a disk."`
	Detach       bool              `help:"Do not wait for it."`
}

// request turns the flags into a request; paths become absolute, because the server has another working directory.
func (c *imageImport) request() (client.ImportRequest, error) {
	r := client.ImportRequest{
		Name: c.Name, OS: c.OS, Release: c.Release, Arch: inventory.Arch(c.Arch), From: c.From, Sums: c.Sums,
		KernelArgs: c.Arg, Set: c.Set, MemoryMiB: c.MemoryMiB, CPULevel: c.CPULevel, IsInstaller: c.Installer,
	}
	if c.OS == "" && c.Kernel == "" && c.Disk == "" && c.Remote == "" {
		return r, cli.Usage("slipway image catalogue lists systems; for your own: --kernel WHERE --initrd WHERE, or --disk WHERE", "say what to import: --os or --kernel or --disk")
	}
	if err := c.disk(&r); err != nil {
		return r, err
	}
	r.ConfigArgs = c.ConfigArg
	for _, text := range c.Config {
		format, tool, ok := strings.Cut(text, "=")
		if !ok || tool == "" {
			return r, cli.Usage("write it as ignition=3.4.0 or ignition=3.4.0:/config.ign", "--config %q names no version", text)
		}
		tool, path, _ := strings.Cut(tool, ":")
		r.Configs = append(r.Configs, inventory.ImageConfig{Format: format, Version: tool, InitrdPath: path})
	}
	var err error
	for _, f := range []struct {
		role    inventory.Role
		sources []string
	}{{inventory.RoleKernel, []string{c.Kernel}}, {inventory.RoleInitrd, c.Initrd}, {inventory.RoleRootfs, c.Rootfs}, {inventory.RoleISO, c.ISO}, {inventory.RoleDisk, []string{c.Disk}}} {
		for _, source := range f.sources {
			if source == "" {
				continue
			}
			if source, err = absolute(source); err != nil {
				return r, err
			}
			r.Files = append(r.Files, client.ImportFile{Role: f.role, Source: source})
		}
	}
	if err := c.giveSums(r.Files); err != nil {
		return r, err
	}
	if r.From != "" && r.From != images.FromPackage {
		if r.From, err = absolute(r.From); err != nil {
			return r, err
		}
	}
	if r.Sums != "" {
		if r.Sums, err = absolute(r.Sums); err != nil {
			return r, err
		}
	}
	return r, c.sign(&r)
}

// sign adds what is said of a signature.
func (c *imageImport) sign(r *client.ImportRequest) (err error) {
	if c.Signature != "" {
		if r.Signature, err = absolute(c.Signature); err != nil {
			return err
		}
	}
	if c.SignatureKey == "" {
		return nil
	}
	raw, err := os.ReadFile(c.SignatureKey)
	if err != nil {
		return inventory.Errorf(inventory.Invalid, "cannot read the key of the signature: %v", err)
	}
	r.SignatureKey, err = images.ArmourKey(raw)
	return err
}

// disk adds what is said of a disk image.
func (c *imageImport) disk(r *client.ImportRequest) (err error) {
	switch {
	case c.Disk != "" && c.Remote != "":
		return cli.Usage("--disk copies it to the server, --remote leaves it where it is", "an image has one disk image")
	case c.Disk == "" && c.Remote == "" && (c.DiskFormat != "" || c.DiskBytes != "" || c.SeedLabel != ""):
		return cli.Usage("name it with --disk WHERE or --remote oci://...", "this is for a disk image, and there is none")
	}
	if c.DiskBytes != "" {
		if r.DiskBytes, err = cli.ParseSize(c.DiskBytes); err != nil {
			return err
		}
	}
	r.DiskFormat, r.Remote, r.SeedLabel = c.DiskFormat, c.Remote, c.SeedLabel
	return nil
}

// absolute makes a path absolute and leaves a URL and the digest of an artefact alone.
func absolute(where string) (string, error) {
	if strings.Contains(where, "://") || strings.HasPrefix(where, "sha256:") {
		return where, nil
	}
	path, err := filepath.Abs(where)
	if err != nil {
		return "", fmt.Errorf("find %s: %w", where, err)
	}
	return path, nil
}

// Run imports an image and shows how far it is.
func (c *imageImport) Run(s *cli.Session, api *client.Client) error {
	r, err := c.request()
	if err != nil {
		return err
	}
	if c.Detach {
		return cli.Answered(api.Import(s.Ctx, r)).Show(s, jobRow)
	}
	return s.Stored(importImage(s, api, r))
}

// importImage imports an image, and shows how far that is until it has ended.
func importImage(s *cli.Session, api *client.Client, r client.ImportRequest) (job client.Job, err error) {
	if job, err = api.Import(s.Ctx, r); err != nil {
		return job, err
	}
	bar := cli.NewBar(s)
	for job, err = range api.WatchJob(s.Ctx, job.ID) {
		if err != nil {
			break
		}
		bar.Show(job)
	}
	bar.End()
	switch {
	case s.Ctx.Err() != nil:
		s.Say("the import goes on; slipway image imports shows how far it is, slipway image cancel %s stops it", job.ID)
		return job, cli.ErrSaid
	case err != nil:
		return job, err
	case job.Error != "":
		return job, inventory.Errorf(inventory.Unavailable, "%s", job.Error).WithHint("%s", job.Hint)
	}
	s.Say("image %s imported", job.Image)
	return job, nil
}

type imageImports struct{}

// Run lists imports.
func (*imageImports) Run(s *cli.Session, api *client.Client) error {
	headings := []string{"ID", "IMAGE", "STATE", "STEP", "FILE", "BYTES", "OF", "WHY"}
	return cli.Items(api.Imports.List(s.Ctx, client.Query{})).Show(s, cli.Rows(headings, func(j client.Job) []string {
		of := ""
		if j.Progress.TotalBytes > 0 {
			of = images.FormatBytes(j.Progress.TotalBytes)
		}
		return []string{j.ID, j.Image, string(j.State), string(j.Progress.Step), j.Progress.File, images.FormatBytes(j.Progress.Bytes), of, j.Error}
	}))
}

// jobRow shows an import that goes on by itself.
func jobRow(t *cli.TableWriter, j client.Job) { t.Row(j.ID, j.Image, string(j.State)) }

type imageCancel struct {
	ID string `arg:"" help:"Of the import."`
}

// Run stops an import.
func (c *imageCancel) Run(s *cli.Session, api *client.Client) error {
	return api.Imports.Delete(s.Ctx, c.ID)
}

type imageRetry struct {
	ID string `arg:"" help:"Of the import."`
}

// Run starts an import once more.
func (c *imageRetry) Run(s *cli.Session, api *client.Client) error {
	return cli.Answered(api.RetryJob(s.Ctx, c.ID)).Show(s, jobRow)
}

type imageCatalogue struct{}

// Run lists the catalogue.
func (*imageCatalogue) Run(s *cli.Session, api *client.Client) error {
	headings := []string{"OS", "RELEASES", "TITLE", "ARCH", "MEMORY", "INSTALLS", "PACKAGE"}
	return cli.Items(api.Catalogue(s.Ctx)).Show(s, cli.Rows(headings, func(e images.Entry) []string {
		var arch []string
		for a := range e.Arch {
			arch = append(arch, string(a))
		}
		slices.Sort(arch)
		return []string{
			e.OS, strings.Join(e.Releases, " "), e.Title, strings.Join(arch, " "), fmt.Sprintf("%d MiB", e.MemoryMiB), cli.YesNo(e.IsInstaller), e.Package,
		}
	}))
}

// ArtefactCommand is slipway artefact.
type ArtefactCommand struct {
	Upload artefactUpload                           `cmd:"" help:"Send a file to the server, so that an import can take it by its digest."`
	List   nouns.List[artefact, inventory.Artefact] `cmd:"" help:"List artefacts."`
	Show   nouns.Show[artefact, inventory.Artefact] `cmd:"" help:"Show an artefact."`
	Verify artefactVerify                           `cmd:"" help:"Read every artefact again and list those that are damaged."`
	Prune  artefactPrune                            `cmd:"" help:"Remove the artefacts that no image uses."`
}

type artefactUpload struct {
	File string `arg:"" type:"existingfile" help:"On this machine."`
}

// Run sends a file.
func (c *artefactUpload) Run(s *cli.Session, api *client.Client) error {
	f, err := os.Open(c.File)
	if err != nil {
		return fmt.Errorf("read %s: %w", c.File, err)
	}
	defer f.Close()
	return cli.Answered(api.Upload(s.Ctx, filepath.Base(c.File), f)).Show(s, func(t *cli.TableWriter, a inventory.Artefact) {
		t.Row(string(a.Digest), images.FormatBytes(a.SizeBytes))
	})
}

// artefact is how people read an artefact.
type artefact struct{}

// About implements nouns.Noun.
func (artefact) About() (one, many string) { return "digest", "digests" }

// Calls implements nouns.Noun.
func (artefact) Calls(c *client.Client) client.Noun[inventory.Artefact] { return c.Artefacts }

// Fields implements nouns.Noun.
func (artefact) Fields(f *nouns.Fields, a inventory.Artefact) {
	f.Both("digest", string(a.Digest))
	f.Listed("size", images.FormatBytes(a.SizeBytes))
	f.Shown("size", fmt.Sprintf("%s (%d bytes)", images.FormatBytes(a.SizeBytes), a.SizeBytes))
	f.Listed("imported", cli.TimeText(a.CreatedAt))
	f.Both("from", a.Source)
	f.Shown("imported", cli.TimeText(a.CreatedAt))
}

type artefactVerify struct{}

// Run checks all artefacts; damage is a failure.
func (*artefactVerify) Run(s *cli.Session, api *client.Client) error {
	faults, err := api.VerifyArtefacts(s.Ctx)
	if err != nil {
		return err
	}
	err = s.Show(faults.Items, func(t *cli.TableWriter) {
		t.Row("DIGEST", "PROBLEM", "IMAGES", "HINT")
		for _, f := range faults.Items {
			t.Row(string(f.Digest), f.Problem, strings.Join(f.Images, " "), f.Hint)
		}
	})
	switch {
	case err != nil:
		return err
	case len(faults.Items) > 0:
		return inventory.Errorf(inventory.Conflict, "%d artefacts are not as they were imported", len(faults.Items)).WithHint("import their images again")
	}
	s.Say("all artefacts are as they were imported")
	return nil
}

type artefactPrune struct {
	DryRun bool `help:"Only show what would be removed."`
}

// Run removes what no image uses.
func (c *artefactPrune) Run(s *cli.Session, api *client.Client) error {
	p, err := api.PruneArtefacts(s.Ctx, c.DryRun)
	if err != nil {
		return err
	}
	done, freed := "removed", "%s freed"
	if c.DryRun {
		done, freed = "would be removed", "%s would be freed"
	}
	err = s.Show(p, func(t *cli.TableWriter) {
		for _, d := range p.Removed {
			t.Row(string(d), done)
		}
		for _, d := range p.Kept {
			t.Row(string(d), "kept: a machine may still be booting it")
		}
	})
	s.Say(freed, images.FormatBytes(p.FreedBytes))
	return err
}

// giveSums gives files the sums of --sha256.
func (c *imageImport) giveSums(files []client.ImportFile) error {
	for _, text := range c.SHA256 {
		name, sum, isNamed := strings.Cut(text, "=")
		if !isNamed {
			name, sum = "", text
		}
		d, err := inventory.ParseDigest(sum)
		if err != nil {
			return cli.Usage("it has 64 hex digits: sha256sum FILE", "--sha256 %q is no SHA-256 sum", text)
		}
		n := slices.IndexFunc(files, func(f client.ImportFile) bool { return isNamed && path.Base(f.Source) == name })
		if !isNamed && len(files) == 1 {
			n = 0
		}
		if n < 0 {
			return cli.Usage("write --sha256 FILE=HEX with the name of a file as --kernel, --initrd, --rootfs, --iso or --disk gives it", "--sha256 %q belongs to no file, or to several", text)
		}
		files[n].SHA256 = d
	}
	return nil
}
