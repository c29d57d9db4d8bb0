/**
 * A shared comparison or report: loaded again when it shows something else, at most every so many seconds. The socket
 * says its version; where sockets do not get through, a request does.
 */
const AT_MOST_EVERY_MS = 10000;
const POLL_MS = 10000;
const AGAIN_MS = 2000;
const GONE = 4404;

const page = document.querySelector("[data-versions]");
const openedAt = Date.now();
let due = 0;

/** @param {string} version as the server has it now */
function heard(version) {
  if (version === page.dataset.version || due) return;
  due = setTimeout(() => location.reload(), Math.max(0, openedAt + AT_MOST_EVERY_MS - Date.now()));
}

function connect() {
  const address = new URL(page.dataset.socket, location.href);
  address.protocol = address.protocol === "https:" ? "wss:" : "ws:";
  const socket = new WebSocket(address);
  let connected = false;
  socket.addEventListener("message", (event) => {
    connected = true;
    heard(JSON.parse(event.data).version);
  });
  socket.addEventListener("close", (event) => {
    if (event.code === GONE) location.reload();
    else setTimeout(connected ? connect : poll, AGAIN_MS);
  });
}

async function poll() {
  try {
    const answer = await fetch(page.dataset.stream, { headers: { Accept: "application/json" } });
    if (answer.status === 404) location.reload();
    else if (answer.ok) heard((await answer.json()).version);
  } catch {
    // No network: the next one tries again.
  }
  setTimeout(poll, POLL_MS);
}

connect();
