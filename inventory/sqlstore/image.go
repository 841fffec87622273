package sqlstore

import (
	"slices"
	"time"

	"slipway.dev/slipway/inventory"
)

const (
	findArtefactSQL   = `SELECT digest, size_bytes, source, created_at FROM artefacts WHERE digest = $1`
	listArtefactsSQL  = `SELECT digest, size_bytes, source, created_at FROM artefacts WHERE digest > $1 ORDER BY digest LIMIT $2`
	saveArtefactSQL   = `INSERT INTO artefacts (digest, size_bytes, source, created_at) VALUES ($1, $2, $3, $4) ON CONFLICT (digest) DO NOTHING`
	artefactUserSQL   = `SELECT image FROM image_files WHERE digest = $1 ORDER BY image LIMIT 1`
	deleteArtefactSQL = `DELETE FROM artefacts WHERE digest = $1`

	imageColumns = `name, os, release, arch, kernel_args, configs, config_args, memory_mib, is_installer, disk_format,
disk_bytes, remote, seed_label, cpu_level, created_at, updated_at, version`

	findImageSQL    = `SELECT ` + imageColumns + ` FROM images WHERE name = $1`
	listImagesSQL   = `SELECT ` + imageColumns + ` FROM images WHERE name > $1 ORDER BY name LIMIT $2`
	imageVersionSQL = `SELECT version FROM images WHERE name = $1`
	imageUserSQL    = `SELECT name FROM profiles WHERE image = $1 ORDER BY name LIMIT 1`
	imageMachineSQL = `SELECT name FROM machines WHERE image = $1 ORDER BY name LIMIT 1`
	hasImageSQL     = `SELECT name FROM images WHERE name = $1`
	insertImageSQL  = `INSERT INTO images (name, os, release, arch, kernel_args, configs, config_args, memory_mib, is_installer,
disk_format, disk_bytes, remote, seed_label, cpu_level, created_at, updated_at, version)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, 1)`
	updateImageSQL = `UPDATE images SET os = $1, release = $2, arch = $3, kernel_args = $4, configs = $5,
config_args = $6, memory_mib = $7, is_installer = $8, disk_format = $9, disk_bytes = $10, remote = $11, seed_label = $12,
cpu_level = $13, updated_at = $14, version = version + 1 WHERE name = $15 AND version = $16`
	deleteImageSQL = `DELETE FROM images WHERE name = $1`

	imageFilesSQL       = `SELECT role, name, digest FROM image_files WHERE image = $1 ORDER BY position`
	insertImageFileSQL  = `INSERT INTO image_files (image, position, role, name, digest) VALUES ($1, $2, $3, $4, $5)`
	deleteImageFilesSQL = `DELETE FROM image_files WHERE image = $1`
)

func readArtefact(s scan) (a inventory.Artefact, err error) {
	err = s(&a.Digest, &a.SizeBytes, &a.Source, timeColumn(&a.CreatedAt))
	return a, err
}

// FindArtefact implements inventory.ImageTx.
func (t *tx) FindArtefact(d inventory.Digest) (inventory.Artefact, error) {
	return find(t, readArtefact, "artefact", string(d), findArtefactSQL, string(d))
}

// ListArtefacts implements inventory.ImageTx.
func (t *tx) ListArtefacts(p inventory.Page) ([]inventory.Artefact, error) {
	return list(t, readArtefact, listArtefactsSQL, p.After, limit(p.Limit))
}

// SaveArtefact implements inventory.ImageTx. The first source and time of a digest stay.
func (t *tx) SaveArtefact(a inventory.Artefact) error {
	_, err := t.write(saveArtefactSQL, string(a.Digest), a.SizeBytes, a.Source, ms(a.CreatedAt))
	return err
}

// DeleteArtefact implements inventory.ImageTx.
func (t *tx) DeleteArtefact(d inventory.Digest) error {
	if err := t.unused("artefact", string(d), "image", artefactUserSQL); err != nil {
		return err
	}
	n, err := t.write(deleteArtefactSQL, string(d))
	return changed(n, err, "artefact", string(d))
}

// unused refuses to delete what something else refers to, which the query finds.
func (t *tx) unused(noun, key, userNoun, userQuery string) error {
	var user string
	found, err := t.row([]any{&user}, userQuery, key)
	if err != nil || !found {
		return err
	}
	return inventory.Errorf(inventory.Conflict, "%s %s is used by %s %s", noun, key, userNoun, user).
		WithHint("change or delete %s %s first", userNoun, user)
}

func readImage(s scan) (i inventory.Image, err error) {
	err = s(&i.Name, &i.OS, &i.Release, &i.Arch, jsonColumn(&i.KernelArgs), jsonColumn(&i.Configs), jsonColumn(&i.ConfigArgs),
		&i.MemoryMiB, &i.IsInstaller, &i.DiskFormat, &i.DiskBytes, &i.Remote, &i.SeedLabel, &i.CPULevel, timeColumn(&i.CreatedAt), timeColumn(&i.UpdatedAt), &i.Version)
	return i, err
}

// FindImage implements inventory.ImageTx.
func (t *tx) FindImage(name string) (inventory.Image, error) {
	return setting(t, "image/"+name, ownImage, func() (inventory.Image, error) {
		i, err := find(t, readImage, "image", name, findImageSQL, name)
		if err != nil {
			return inventory.Image{}, err
		}
		i.Files, err = t.imageFiles(name)
		return i, err
	})
}

func (t *tx) imageFiles(image string) ([]inventory.ImageArtefact, error) {
	return list(t, func(s scan) (f inventory.ImageArtefact, err error) {
		err = s(&f.Role, &f.Name, &f.Digest)
		return f, err
	}, imageFilesSQL, image)
}

// ListImages implements inventory.ImageTx. There are few images, so their files are read one by one.
func (t *tx) ListImages(p inventory.Page) ([]inventory.Image, error) {
	images, err := list(t, readImage, listImagesSQL, p.After, limit(p.Limit))
	if err != nil {
		return nil, err
	}
	for i := range images {
		if images[i].Files, err = t.imageFiles(images[i].Name); err != nil {
			return nil, err
		}
	}
	return images, nil
}

// CreateImage implements inventory.ImageTx.
func (t *tx) CreateImage(i *inventory.Image, now time.Time) error {
	var version int64
	if found, err := t.row([]any{&version}, imageVersionSQL, i.Name); err != nil {
		return err
	} else if found {
		return taken("image", i.Name)
	}
	if err := t.hasArtefacts(i); err != nil {
		return err
	}
	args, err := imageArgs(i)
	if err != nil {
		return err
	}
	now = stamp(now)
	args = append([]any{i.Name}, args...)
	if _, err := t.write(insertImageSQL, append(args, ms(now), ms(now))...); err != nil {
		return err
	}
	if err := t.insertImageFiles(i); err != nil {
		return err
	}
	i.CreatedAt, i.UpdatedAt, i.Version = now, now, 1
	return nil
}

// UpdateImage implements inventory.ImageTx.
func (t *tx) UpdateImage(i *inventory.Image, now time.Time) error {
	if err := t.hasArtefacts(i); err != nil {
		return err
	}
	args, err := imageArgs(i)
	if err != nil {
		return err
	}
	now = stamp(now)
	n, err := t.write(updateImageSQL, append(args, ms(now), i.Name, i.Version)...)
	if err := t.updated(n, err, "image", i.Name, i.Version, imageVersionSQL, i.Name); err != nil {
		return err
	}
	has, err := t.imageFiles(i.Name)
	if err != nil {
		return err
	}
	if !slices.Equal(has, i.Files) {
		if _, err := t.write(deleteImageFilesSQL, i.Name); err != nil {
			return err
		}
		if err := t.insertImageFiles(i); err != nil {
			return err
		}
	}
	i.UpdatedAt = now
	i.Version++
	return nil
}

// imageArgs returns the arguments that insert and update share.
func imageArgs(i *inventory.Image) ([]any, error) {
	args := []any{i.OS, i.Release, string(i.Arch)}
	for _, list := range []any{i.KernelArgs, i.Configs, i.ConfigArgs} {
		text, err := jsonText(list)
		if err != nil {
			return nil, err
		}
		args = append(args, text)
	}
	return append(args, i.MemoryMiB, bit(i.IsInstaller), i.DiskFormat, i.DiskBytes, i.Remote, i.SeedLabel, i.CPULevel), nil
}

func (t *tx) hasArtefacts(i *inventory.Image) error {
	for _, f := range i.Files {
		_, err := t.FindArtefact(f.Digest)
		if inventory.IsKind(err, inventory.NotFound) {
			return inventory.Errorf(inventory.Invalid, "image %s: the artefact of %s (%s) is not stored", i.Name, f.Name, f.Digest).
				WithHint("import it first: slipway image import")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (t *tx) insertImageFiles(i *inventory.Image) error {
	for at, f := range i.Files {
		if _, err := t.write(insertImageFileSQL, i.Name, at, string(f.Role), f.Name, string(f.Digest)); err != nil {
			return err
		}
	}
	return nil
}

// DeleteImage implements inventory.ImageTx.
func (t *tx) DeleteImage(name string) error {
	if err := t.unused("image", name, "profile", imageUserSQL); err != nil {
		return err
	}
	if err := t.unused("image", name, "machine", imageMachineSQL); err != nil {
		return err
	}
	n, err := t.write(deleteImageSQL, name)
	return changed(n, err, "image", name)
}
