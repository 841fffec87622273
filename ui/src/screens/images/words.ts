import type { Artefact, Image } from '../../api/client'

// sizeOf adds up what an image keeps here; files that two images share count in both.
export function sizeOf(i: Image, artefacts: Artefact[]): number {
  const sizes = new Map(artefacts.map((a) => [a.digest, a.sizeBytes]))
  return i.files.reduce((sum, f) => sum + (sizes.get(f.digest) ?? 0), 0)
}

// kindOf says what becomes of an image.
export function kindOf(i: Image): string {
  if (i.remote) return 'written to disk, from a registry'
  if (i.files.some((f) => f.role === 'disk')) return 'written to disk'
  return i.isInstaller ? 'installer' : 'boots in memory'
}
