// Drafts are texts that are not saved yet. They are kept for this tab, under the name of whoever typed them.
const prefix = 'slipway-draft:'

export const draftKey = (who: string, name: string) => `${prefix}${who}:${name}`

// hasDraft says whether a text was begun and neither saved nor thrown away.
export function hasDraft(who: string, name: string): boolean {
  try {
    return sessionStorage.getItem(draftKey(who, name)) !== null
  } catch {
    return false
  }
}

// keepDraftsOf forgets the drafts of everybody else, and all of them when nobody is named: a tab may be handed on, and a
// text may hold what the next one must not read.
export function keepDraftsOf(who?: string) {
  try {
    for (const key of Object.keys(sessionStorage)) {
      if (key.startsWith(prefix) && !(who && key.startsWith(draftKey(who, '')))) sessionStorage.removeItem(key)
    }
  } catch {
    // there is no storage, so nothing was kept
  }
}
