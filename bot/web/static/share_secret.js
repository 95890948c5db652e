/* The secret with which a tab that is reloaded reconnects to its share. A browser that blocks cookies keeps none, and the
   page works without: only a reload needs it. */
const KEY = "roomtone-resume";

/* Keep the secret in place of the former one; null: keep none. */
export function keepSecret(secret) {
  try {
    if (secret) sessionStorage.setItem(KEY, secret);
    else sessionStorage.removeItem(KEY);
  } catch {
    // Blocked.
  }
}

export function keptSecret() {
  try {
    return sessionStorage.getItem(KEY);
  } catch {
    return null;
  }
}
