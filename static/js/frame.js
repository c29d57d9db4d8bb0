/** What every page does: menus, the theme, messages that go away, dialogs, times that stay true, a bell that rings, a palette. */
import { startMenus } from "./frame/menus.js";
import { startThemes } from "./frame/themes.js";
import { startMessages } from "./frame/messages.js";
import { startDialogs } from "./frame/dialogs.js";
import { startClocks } from "./frame/clocks.js";
import { startForms } from "./frame/forms.js";
import { startBell } from "./frame/bell.js";
import { startKeys } from "./frame/keys.js";
import { startPalette } from "./frame/palette.js";
import { startRail } from "./frame/rail.js";
import { startRate } from "./frame/rate.js";
import { startStrips } from "./frame/strips.js";

startMenus();
startThemes();
startMessages();
startDialogs();
startClocks();
startForms();
startBell();
startPalette();
startKeys();
startRail();
startRate();
startStrips();
